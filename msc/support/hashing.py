"""Content hashes: the keys of caches and the digests of weights."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable
from errno import EINVAL
from pathlib import Path


def digest(parts: Iterable[bytes | str]) -> str:
    """SHA-256 of the parts in hexadecimal; each part is length-prefixed, so ("ab", "c") differs from ("a", "bc")."""
    state = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        state.update(len(data).to_bytes(8, "little"))
        state.update(data)
    return state.hexdigest()


def file_digest(path: Path) -> str:
    """SHA-256 of a plain file's bytes in hexadecimal. Raises OSError, also for what is none and may not end."""
    with open(path, "rb", opener=_without_waiting) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(EINVAL, "it is not a plain file", str(path))
        return hashlib.file_digest(file, "sha256").hexdigest()


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
