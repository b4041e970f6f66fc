"""User code that has no source to read, as that of `python -c` and `exec`: it runs as it is, like library code."""

from __future__ import annotations

import sys
from types import FrameType

from msc.frontend.reader.libraries import is_library_file
from msc.frontend.reader.source import source_of


def unread_function() -> str | None:
    """What keeps the innermost user function that runs as it is from being read; None if none runs so."""
    frame: FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame is not None and is_library_file(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is None or source_of(frame.f_code) is not None:
        return None
    return f"the source of '{frame.f_code.co_name}' in {frame.f_code.co_filename} cannot be read"
