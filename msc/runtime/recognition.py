"""Which files msc built: libraries, objects, archives and programs of it hold the signature of their model."""

from __future__ import annotations

from mmap import ACCESS_READ, mmap
from pathlib import Path

from msc.runtime.program_text import PROGRAM_TEXT
from msc.support.plain_files import opened

_SIGNATURE = (b'{"format":', b'"workspace_bytes":', b'"stack_bytes":')
_HEADS = {"so": b"\x7fELF", "o": b"\x7fELF", "exe": b"\x7fELF", "a": b"!<arch>\n"}
_OTHER_HEADS = (b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe")
"""Mach-O, of one machine and of several."""


def begins_as(path: Path, kind: str) -> bool:
    """Whether a file begins as an object file, or as an archive where that is the `kind`. Raises OSError."""
    with opened(path) as file:
        head = file.read(8)
    return head.startswith(_HEADS[kind]) or (kind != "a" and head.startswith(_OTHER_HEADS))


def is_built(path: Path, kind: str) -> bool:
    """Whether msc built this `so`, `o`, `a` or `exe`. Raises OSError."""
    if not begins_as(path, kind):
        return False
    with opened(path) as file, mmap(file.fileno(), 0, access=ACCESS_READ) as data:
        wanted = (*_SIGNATURE, *((PROGRAM_TEXT,) if kind == "exe" else ()))
        return all(data.find(text) >= 0 for text in wanted)
