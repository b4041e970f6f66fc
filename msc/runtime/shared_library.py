"""Shared libraries opened from files that nobody can change, and closed when nobody uses them."""

from __future__ import annotations

import ctypes
import os
import sys
import tempfile
from _ctypes import dlclose, dlopen
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import RLock
from typing import cast
from weakref import WeakValueDictionary, finalize


def copy_of_file(source: int, size: int) -> int:
    """The first `size` bytes of an open file in memory that nobody can write: its descriptor.

    Who writes to a file that is mapped changes or ends the programs that have mapped it. Where the system has no such
    memory, the copy is a file without a name. Raises OSError.
    """
    return _filled(lambda copy: _copy(source, copy, size))


def copy_of_bytes(data: bytes) -> int:
    """The same of bytes. Raises OSError."""

    def write(copy: int) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(copy, rest) :]

    return _filled(write)


def _filled(fill: Callable[[int], None]) -> int:
    copy = _unnamed_file()
    try:
        fill(copy)
        _seal(copy)
    except BaseException:
        os.close(copy)
        raise
    return copy


def _unnamed_file() -> int:
    if hasattr(os, "memfd_create"):
        with suppress(OSError):
            return os.memfd_create("msc", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    descriptor, name = tempfile.mkstemp(prefix="msc-", suffix=".so")
    os.unlink(name)
    return descriptor


def _copy(source: int, target: int, size: int) -> None:
    position = 0
    with suppress(OSError):
        while position < size and (count := os.sendfile(target, source, position, size - position)):
            position += count
    os.lseek(target, position, os.SEEK_SET)
    while position < size and (block := os.pread(source, 1 << 20, position)):
        position += os.write(target, block)
    if position < size:
        raise OSError(0, "the file became shorter while it was read")


def _seal(descriptor: int) -> None:
    """No more writing, where the system offers that."""
    if sys.platform == "linux":
        import fcntl

        with suppress(OSError):
            seals = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL
            fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, seals)


class SharedLibrary:
    """An open shared library; it owns the descriptor of its file.

    It is closed when this object goes, which ends its threads. At the end of the process it is not: daemon threads may
    still be running in it.
    """

    def __init__(self, descriptor: int) -> None:
        """Raises OSError where the system's loader refuses the file; the descriptor is closed then."""
        self.file = Path(f"/dev/fd/{descriptor}")
        self.descriptor = descriptor
        try:
            handle = dlopen(str(self.file), os.RTLD_NOW)
        except BaseException:
            os.close(descriptor)
            raise
        finalize(self, _close, handle, descriptor).atexit = False
        self._library = ctypes.CDLL(str(self.file), handle=handle)

    @classmethod
    def of(cls, descriptor: int) -> SharedLibrary:
        """The library in an open file, which it takes over; one that is open already is shared. Raises OSError.

        The system's loader knows a file that is loaded twice, and keeps what it has until both are closed.
        """
        with _LOCK:
            status = os.fstat(descriptor)
            found = _OPEN.get((status.st_dev, status.st_ino))
            if found is None:
                found = _OPEN[status.st_dev, status.st_ino] = cls(descriptor)
            else:
                os.close(descriptor)
            return found

    def function(self, name: str, result: type | None = ctypes.c_int) -> Callable[..., int]:
        """An exported function. Raises AttributeError."""
        function = self._library[name]
        function.restype = result
        return cast(Callable[..., int], function)

    def has(self, name: str) -> bool:
        """Whether there is an exported function of this name."""
        return hasattr(self._library, name)


_LOCK = RLock()
_OPEN: WeakValueDictionary[tuple[int, int], SharedLibrary] = WeakValueDictionary()
"""The libraries that are open, by device and number of the file."""


def _close(handle: int, descriptor: int) -> None:
    dlclose(handle)
    if not _is_open(f"/dev/fd/{descriptor}"):
        os.close(descriptor)


def _is_open(name: str) -> bool:
    """Whether a library of this name stayed open.

    The system knows libraries by name, and would take it for the next one that gets the same descriptor.
    """
    if sys.platform != "linux":
        return False
    with suppress(OSError):
        dlclose(dlopen(name, os.RTLD_NOW | os.RTLD_NOLOAD))
        return True
    return False
