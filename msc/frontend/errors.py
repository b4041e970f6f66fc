"""Errors of the Python API: diagnostics at the user's own line, which are also Python's TypeError, ValueError, ...

What a user calls with wrong arguments raises an `MscError` that is a TypeError or a ValueError as well, so that code
written for MindSpore, which catches those, goes on working.
"""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module
from itertools import islice
from pathlib import Path
from types import CodeType, FrameType
from typing import ClassVar

from msc.support.diagnostics import Diagnostic, Location, MscError
from msc.support.torch_names import hint

_PACKAGE = str(Path(__file__).parents[1]) + "/"
_STANDARD_LIBRARY = str(Path(linecache.__file__).parent) + "/"
_COMMAND_LINE = _PACKAGE + "driver/verbs/"
"""Around what the command line runs, where there are no lines of the user's."""
_MAXIMUM_CALLERS = 8
_PUBLIC = (
    *("msc", "msc.nn", "msc.ops", "msc.train.callback", "msc.dataset", "msc.dataset.transforms", "msc.dataset.vision"),
    "msc.common.initializer",
)
"""Where a name is looked for that another of these modules does not have."""

OVERFLOW = "MSC0834"
"""The code of integers that need more than 64 bits."""


class ApiError(MscError):
    """A mistake in a call of the Python API; the location is the user's line, the notes are the calls to it."""

    def __init__(self, code: str, message: str, *, help: str | None = None, notes: tuple[str, ...] = ()) -> None:
        super().__init__(at_user_line(code, message, help=help, notes=notes))


class ApiTypeError(ApiError, TypeError):
    """An argument of a type, or tensors of element types, that the call does not take."""


class ApiValueError(ApiError, ValueError):
    """An argument of a right type with a value that it cannot have; shapes that do not fit."""


class ApiIndexError(ApiError, IndexError):
    """An index outside its dimension."""


class ApiMemoryError(ApiError, MemoryError):
    """A result that does not fit into memory."""


class ApiAttributeError(ApiError, AttributeError):
    """A name that the object does not have."""


def at_user_line(code: str, message: str, *, help: str | None = None, notes: tuple[str, ...] = ()) -> Diagnostic:
    """A diagnostic at the innermost line outside of msc that is executed or read, with the calls that led there."""
    places = list(islice(user_places(), _MAXIMUM_CALLERS))
    if not places:
        return Diagnostic(code, message, notes=notes, help=help)
    first = places[0]
    callers = tuple(f"called from {place.location}, in {place.function}" for place in places[1:])
    return Diagnostic(code, message, first.location, first.line, first.length, (*notes, *callers), help)


@dataclass(frozen=True)
class UserPlace:
    """A place in user code: where it is, the text of its line, how many characters are meant, and the function."""

    location: Location
    line: str | None
    length: int
    function: str


class Readers:
    """Functions of msc that read user code instead of running it. `places` gives where such a frame is reading."""

    codes: ClassVar[dict[CodeType, Callable[[FrameType], UserPlace]]] = {}


def user_places() -> Iterator[UserPlace]:
    """Where user code is, innermost first, as far as the thread's program or the tool that runs it."""
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame is not None and not frame.f_code.co_filename.startswith(_COMMAND_LINE):
        name = frame.f_code.co_filename
        if frame.f_code in Readers.codes:
            yield Readers.codes[frame.f_code](frame)
        elif not name.startswith((_PACKAGE, "<frozen")) and not _is_standard(name):
            yield UserPlace(*place_of(frame), _name(frame.f_code))
            if frame.f_code.co_name == "<module>" or frame.f_code.co_name.startswith("test_"):
                return
        frame = frame.f_back


def is_msc(frame: FrameType) -> bool:
    """Whether a frame runs msc's code, for itself and not in place of a user's that it reads."""
    return frame.f_code.co_filename.startswith(_PACKAGE) and frame.f_code not in Readers.codes


def is_user_code(frame: FrameType) -> bool:
    """Whether a frame runs or reads code that belongs neither to msc nor to Python or a package."""
    name = frame.f_code.co_filename
    if frame.f_code in Readers.codes:
        return True
    compiled = name.endswith((".pyx", ".pxd")) or name.startswith(("<frozen", "<__array_function__"))
    packaged = "site-packages" in name or "dist-packages" in name
    return not (compiled or packaged or name.startswith(_PACKAGE) or _is_standard(name))


def _is_standard(file: str) -> bool:
    """Whether a file belongs to Python itself, whose functions msc calls and is called by."""
    return file.startswith(_STANDARD_LIBRARY) and "site-packages" not in file


def place_of(frame: FrameType) -> tuple[Location, str | None, int]:
    """Where a frame is: the location, the text of its line, and how many characters the expression takes there."""
    positions = next(islice(frame.f_code.co_positions(), max(frame.f_lasti, 0) // 2, None), (None,) * 4)
    line, end_line, column, end_column = positions
    line = line or frame.f_lineno or 1
    text = linecache.getline(frame.f_code.co_filename, line, frame.f_globals).rstrip("\n") or None
    start = 0 if column is None else _characters(text, column)
    end = _characters(text, end_column) if end_column is not None and end_line == line else len(text or "")
    return Location(frame.f_code.co_filename, line, start + 1), text, max(end - start, 1)


def _characters(text: str | None, column: int) -> int:
    """Python counts bytes of UTF-8 in a line; people count characters."""
    return column if text is None else len(text.encode()[:column].decode(errors="ignore"))


def _name(code: CodeType) -> str:
    return code.co_qualname.replace(".<locals>", "")


def missing_name(module: str, name: str, names: Iterable[str]) -> AttributeError:
    """The error of a name that a module of the API does not have; Python's own for what Python asks itself."""
    if name.startswith("__"):
        return AttributeError(name)
    known = list(names)
    others = () if name.lower() in map(str.lower, known) else _PUBLIC
    elsewhere = next((each for each in others if each != module and name in import_module(each).__all__), None)
    help_ = hint(name, known) if elsewhere is None else f"it is in {elsewhere}: {elsewhere}.{name}"
    return ApiAttributeError("MSC0832", f"{module} has no '{name}'", help=help_)


class NeedsValue(ApiError):
    """Something asks for the elements of a tensor that is only known when the captured graph runs."""

    def __init__(self, what: str) -> None:
        super().__init__(
            "MSC0802",
            f"{what} needs the elements of a tensor, which are not known while a graph is captured",
            help="compute it with tensor operations, or call this function in PyNative mode",
        )
