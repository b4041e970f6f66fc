"""Values that users give to Python functions, taken or refused with the words of the API: MSC0008."""

from __future__ import annotations

from operator import index
from os import PathLike, fsdecode, fsencode
from pathlib import Path
from typing import Any, NoReturn, cast

from msc.support.diagnostics import Diagnostic, MscError
from msc.support.files import names_folder
from msc.support.other_frameworks import advice_for, framework_of

CONVERSION_ERRORS = (ArithmeticError, AttributeError, BufferError, LookupError, RuntimeError, TypeError, ValueError)
"""What the conversions of other people's objects raise."""


def refuse(name: str, value: object, wanted: str, advice: str | None = None) -> NoReturn:
    """Raise MSC0008 for an argument: what it is, and what it takes."""
    advice = advice or advice_for(value)
    raise MscError(Diagnostic("MSC0008", f"{name} is {described(value)}; it takes {wanted}", help=advice))


def described(value: object) -> str:
    """A value in a message: short ones as they are written, others by their type."""
    if value is None or isinstance(value, bool):
        return str(value)
    if isinstance(value, str | bytes | int | float):
        text = repr(value)
        return text if len(text) <= 40 else f"{text[:36]}... ({type(value).__name__})"
    framework = framework_of(value)
    kind = f"the class {value.__name__}" if isinstance(value, type) else f"of type {type(value).__name__}"
    return kind if framework is None else f"{kind}, of {framework}"


def integer(name: str, value: Any, wanted: str = "an integer") -> int:
    """An int, or what counts as one, such as np.int64; no bool. Raises MSC0008."""
    if isinstance(value, bool) or type(value).__name__ in ("bool", "bool_"):
        refuse(name, bool(value), wanted)
    try:
        return index(value)
    except CONVERSION_ERRORS:
        refuse(name, value, wanted)


def boolean(name: str, value: Any) -> bool:
    """A bool, Python's or NumPy's. Raises MSC0008."""
    if isinstance(value, bool) or type(value).__name__ in ("bool", "bool_"):
        return bool(value)
    refuse(name, value, "True or False")


def text(name: str, value: Any, wanted: str = "a string") -> str:
    """A string. Raises MSC0008."""
    if isinstance(value, str) and _is_unicode(value):
        return value
    refuse(name, cast(object, value), wanted)


def _is_unicode(text: str) -> bool:
    """Whether a string has no lone surrogates, which no file of text can have."""
    return not any("\ud800" <= character <= "\udfff" for character in text)


def file_path(name: str, value: Any, wanted: str = "the path of a file", *, writes: bool = False) -> Path:
    """A path from a string or another path; of a file that is written it is none of a folder, as `out/`.

    Raises MSC0008.
    """
    if not isinstance(value, str | PathLike):
        refuse(name, cast(object, value), wanted)
    try:
        path = fsdecode(cast("str | PathLike[str]", value))
        fsencode(path)
    except CONVERSION_ERRORS:
        refuse(name, cast(object, value), wanted)
    if not path or "\0" in path or (writes and names_folder(path)):
        refuse(name, path, wanted)
    return Path(path)


def sequence(name: str, value: Any, wanted: str) -> tuple[Any, ...]:
    """The items of a list or tuple. Raises MSC0008."""
    if isinstance(value, list | tuple):
        return tuple(cast("list[Any]", value))
    refuse(name, value, wanted)


def content(name: str, file: Any) -> bytes:
    """What an open file holds. Raises MSC0008 for one that is open for text."""
    data: object = file.read()
    if isinstance(data, bytes):
        return data
    refuse(name, file, "a file open for bytes", "open it with mode 'rb'")
