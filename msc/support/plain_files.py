"""The files that users name, read by one reader: it waits for nothing, and takes no more memory than was agreed.

A path may lead to a FIFO to which nobody writes, to a device without an end, to a file of a terabyte, or to a few bytes
that unpack to one. Only plain files are read; their sizes are known, so a limit is checked before anything is read.
"""

from __future__ import annotations

import gzip
import io
import mmap
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager
from errno import EFBIG, EINVAL
from pathlib import Path
from typing import IO, cast

LARGEST = 1 << 36
"""Bytes of a file that is read as a whole, unless a smaller limit is given."""

_LARGEST_RATIO = 1032
"""How much longer than its compressed form what DEFLATE unpacks can be. Source: zlib's technical details."""
_PIECE = 1 << 24
_GZIP = b"\x1f\x8b"


def opened(path: Path | str, limit: int = LARGEST) -> io.BufferedReader:
    """A plain file of at most `limit` bytes, open for reading. Raises OSError."""
    file = open(path, "rb", opener=_without_waiting)  # noqa: SIM115
    try:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise OSError(EINVAL, "it is not a plain file", str(path))
        if status.st_size > limit:
            raise OSError(EFBIG, f"it has {status.st_size:,} bytes; at most {limit:,} are read", str(path))
    except BaseException:
        file.close()
        raise
    return file


def content(path: Path | str, limit: int = LARGEST) -> bytes:
    """The bytes of a plain file, at most `limit` of them. Raises OSError."""
    with opened(path, limit) as file:
        data = first(file, limit + 1)
    if len(data) > limit:
        raise OSError(EFBIG, f"it grows, and has more than {limit:,} bytes", str(path))
    return data


def mapped(path: Path | str) -> mmap.mmap | bytes:
    """The bytes of a plain file, mapped. Raises OSError."""
    with opened(path) as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if os.fstat(file.fileno()).st_size else b""


@contextmanager
def unpacked(path: Path) -> Generator[tuple[IO[bytes], int]]:
    """A plain file, unpacked as it is read if it is gzip, and how many bytes can come at most.

    Raises OSError; reading raises that, EOFError and zlib.error.
    """
    with opened(path) as file:
        size = os.fstat(file.fileno()).st_size
        if file.peek(2)[:2] == _GZIP:
            with gzip.GzipFile(fileobj=file) as text:
                yield cast("IO[bytes]", text), size * _LARGEST_RATIO
        else:
            yield file, size


def first(file: IO[bytes], count: int) -> bytes:
    """The next `count` bytes, or fewer at the end: memory is taken for what comes, not for what was asked."""
    data = bytearray()
    while piece := file.read(min(_PIECE, count - len(data))):
        data += piece
    return bytes(data)


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0))
