"""Which code is run, not read: that of libraries, and user code without a source, as that of `python -c` and `exec`."""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path
from types import FrameType

from msc.frontend.reader.source import source_of

_PATHS = sysconfig.get_paths()
_LIBRARIES = (
    str(Path(__file__).parents[2]) + "/",
    *{_PATHS[k].rstrip("/") + "/" for k in ("stdlib", "platstdlib", "purelib", "platlib")},
    "/usr/lib/python3/",
    "<frozen",
)

_OURS = _LIBRARIES[0]
_READ = str(Path(__file__).parents[2] / "train" / "step_loop.py")
"""Code of msc that is read: its loop of steps becomes one of the graph."""


def is_library_file(file: str) -> bool:
    """Whether a file belongs to Python, to msc or to an installed package."""
    return file != _READ and (file.startswith(_LIBRARIES) or "/site-packages/" in file or "/dist-packages/" in file)


def is_own_file(file: str) -> bool:
    """Whether a file belongs to msc."""
    return file.startswith(_OURS)


def unread_function() -> str | None:
    """What keeps the innermost user function that runs as it is from being read; None if none runs so."""
    frame: FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame is not None and is_library_file(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is None or source_of(frame.f_code) is not None:
        return None
    return f"the source of '{frame.f_code.co_name}' in {frame.f_code.co_filename} cannot be read"
