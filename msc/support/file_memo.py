"""What was found out about a file, kept until the file changes: gigabytes are hashed once, not at every look-up.

A note holds the file's stamp: its device, inode and size, when it was written, when it was changed, and the boot of the
system. Whoever writes to a file changes the stamp, even if they keep the size and set back the time of writing, as the
time of change cannot be set. Two things are minded, the first as git's index does: what was changed within one tick of
the file system's clock could change once more at the same time, so a file is left to settle before it is read; and
after a loss of power a file may have its times but not its bytes, so notes of an earlier boot do not count.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from msc.support.diagnostics import MscError
from msc.support.files import write_text
from msc.support.hashing import digest, file_digest

SUFFIX = ".memo"

_TICK = 20_000_000
"""Nanoseconds within which file systems may give two changes the same time."""
_COARSE_TICK = 2_000_000_000
"""The same where times are whole seconds."""
_MAXIMUM_NOTE_BYTES = 4096


@dataclass(frozen=True)
class FileMemo:
    """Notes on files, in a folder. Trouble with the folder means that nothing is remembered."""

    folder: Path

    def digest(self, path: Path) -> str:
        """SHA-256 of a file's bytes in hexadecimal, read only if it is not known. Raises OSError."""
        return self.recall(path) or self.find_out(path, lambda: file_digest(path)) or ""

    def find_out(self, path: Path, look: Callable[[], str | None]) -> str | None:
        """What `look` says of a file, noted if the file stays as it is meanwhile. Raises OSError, and as `look`."""
        before = _stamp(path)
        quiet = before is not None and settled(path.stat().st_ctime_ns)
        value = look()
        if quiet and value is not None and _stamp(path) == before:
            with suppress(OSError, MscError):
                write_text(self.note(path), f"{before}\n{value}", durable=False)
        return value

    def recall(self, path: Path) -> str | None:
        """What was noted of a file that is still as it was; None when it must be found out."""
        try:
            note, now = self.note(path), _stamp(path)
            if now is None or note.stat().st_size > _MAXIMUM_NOTE_BYTES:
                return None
            then, _, value = note.read_text("utf-8").partition("\n")
        except (OSError, ValueError):
            return None
        return value if then == now and value else None

    def note(self, path: Path) -> Path:
        """Where the note on a file is."""
        return self.folder / f"{digest([os.path.abspath(path)])}{SUFFIX}"


def _stamp(path: Path) -> str | None:
    """None where the system does not tell its boots apart. Raises OSError."""
    boot = _boot()
    found = path.stat()
    numbers = found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
    return None if boot is None else " ".join(map(str, (*numbers, boot)))


def settled(changed: int) -> bool:
    """Whether a change from now on would show in the time of change, now `changed` nanoseconds.

    Waits for that if it is a short time.
    """
    tick = _TICK if changed % 1_000_000_000 else _COARSE_TICK
    age = time.time_ns() - changed
    if 0 <= age < tick == _TICK:
        time.sleep((tick - age) / 1e9)
        return True
    return age >= tick


@cache
def _boot() -> str | None:
    """What Linux calls this boot; None elsewhere."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip() or None
    except (OSError, ValueError):
        return None
