"""Which code is run, not read: that of libraries, and user code without a source, as that of `python -c` and `exec`."""

from __future__ import annotations

import sys
import sysconfig
from inspect import unwrap
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any, TypeVar

from msc.frontend.reader.source import source_of

_PATHS = sysconfig.get_paths()
_LIBRARIES = (
    str(Path(__file__).parents[2]) + "/",
    *{_PATHS[k].rstrip("/") + "/" for k in ("stdlib", "platstdlib", "purelib", "platlib")},
    "/usr/lib/python3/",
    "<frozen",
)

_OURS = _LIBRARIES[0]
_READ: set[type[Any] | CodeType] = set()
"""Classes of msc whose methods are read, and the code of those."""

_Class = TypeVar("_Class", bound=type[Any])


def read_as_users(kind: _Class) -> _Class:
    """A decorator of classes of msc: methods are read as a user's are, so that loops become loops of the graph."""
    _READ.add(kind)
    for function in vars(kind).values():
        if isinstance(function, FunctionType):
            _add(unwrap(function).__code__)  # not the boundary around it
    return kind


def _add(code: CodeType) -> None:
    _READ.add(code)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            _add(constant)


def is_library_code(code: CodeType) -> bool:
    """Whether code belongs to Python, to msc or to an installed package, and is run."""
    file = code.co_filename
    return _is_library_file(file) and not (is_own_file(file) and code in _READ)


def is_library_class(kind: type) -> bool:
    """The same of a class whose definition is Python's."""
    module = sys.modules.get(kind.__module__)
    if kind in _READ or module is None or kind.__module__ in ("__main__", "__mp_main__"):
        return False
    file = getattr(module, "__file__", None)
    return file is None or _is_library_file(file)


def _is_library_file(file: str) -> bool:
    return file.startswith(_LIBRARIES) or "/site-packages/" in file or "/dist-packages/" in file


def is_own_file(file: str) -> bool:
    """Whether a file belongs to msc."""
    return file.startswith(_OURS)


def unread_function() -> str | None:
    """What keeps the innermost user function that runs as it is from being read; None if none runs so."""
    frame: FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame is not None and is_library_code(frame.f_code):
        frame = frame.f_back
    if frame is None or source_of(frame.f_code) is not None:
        return None
    return f"the source of '{frame.f_code.co_name}' in {frame.f_code.co_filename} cannot be read"
