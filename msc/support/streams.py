"""Sources that are no plain files: the standard input, pipes, FIFOs. Each is read once, to its end, and then known."""

from __future__ import annotations

import os
import select
import stat
from pathlib import Path

from msc.support.destinations import resolved

STANDARD_INPUT = "-"
PATIENCE = 10.0
"""Seconds that a FIFO or a device may be silent: perhaps nobody writes to it, which nothing tells."""

_BLOCK = 1 << 16
_known: dict[tuple[int, int], bytes] = {}


def is_stream(name: str) -> bool:
    """Whether a source is no plain file: `-`, or a FIFO, device or open descriptor by its path."""
    if name == STANDARD_INPUT:
        return True
    try:
        mode = os.stat(name).st_mode
    except (OSError, ValueError):
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def has_place(name: str) -> bool:
    """Whether a source lies in a folder, in which there may be files that belong to it."""
    return name != STANDARD_INPUT and resolved(Path(name)).descriptor is None


def read_stream(name: str, limit: int) -> bytes:
    """The bytes of a stream, at most one more than `limit`. Raises OSError, also for one that is silent for long."""
    descriptor = 0 if name == STANDARD_INPUT else os.open(name, os.O_RDONLY | os.O_NONBLOCK)
    try:
        status = os.fstat(descriptor)
        key = status.st_dev, status.st_ino
        if key not in _known:
            _known[key] = _drained(descriptor, limit, PATIENCE if has_place(name) else None)
        return _known[key]
    finally:
        if descriptor:
            os.close(descriptor)


def _drained(descriptor: int, limit: int, patience: float | None) -> bytes:
    waiting, data = select.poll(), bytearray()
    waiting.register(descriptor, select.POLLIN)
    while len(data) <= limit:
        if not waiting.poll(None if patience is None else patience * 1000):
            raise TimeoutError(0, f"nothing was written to it for {patience:g} seconds")
        block = os.read(descriptor, _BLOCK)
        if not block:
            break
        data += block
    return bytes(data)
