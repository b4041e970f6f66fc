"""Content hashes: the keys of caches and the digests of weights."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from msc.support.plain_files import opened


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
    with opened(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
