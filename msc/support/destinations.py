"""Where a path leads: to a regular file, or into something that is written to and read from in order."""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass
from errno import ELOOP
from pathlib import Path

_LINKS = 40


@dataclass(frozen=True)
class Destination:
    """Where a path leads: an open descriptor, a regular file (there or not), or another kind of file."""

    path: Path
    descriptor: int | None = None
    is_regular: bool = False

    @property
    def is_stream(self) -> bool:
        """Whether the output is written into what is there."""
        return not self.is_regular


def resolved(path: Path) -> Destination:
    """Follow links. Raises OSError for links without end, ValueError for what is no path."""
    current = os.path.abspath(path)
    for _ in range(_LINKS):
        folder, name = os.path.split(current)
        folder = os.path.realpath(folder)
        if re.fullmatch(rf"/proc/{os.getpid()}(/task/\d+)?/fd", folder) and name.isdecimal():
            return Destination(path, int(name))
        if not os.path.islink(os.path.join(folder, name)):
            return Destination(Path(folder, name), None, _is_regular_or_missing(os.path.join(folder, name)))
        current = os.path.normpath(os.path.join(folder, os.readlink(os.path.join(folder, name))))
    raise OSError(ELOOP, os.strerror(ELOOP))


def _is_regular_or_missing(path: str) -> bool:
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return True
    return stat.S_ISREG(mode) or stat.S_ISDIR(mode)
