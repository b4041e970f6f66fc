"""A content-addressed cache of built artifacts, private to the user.

An entry is the shared library with a trailer after its end, which loaders ignore: magic, key, length and SHA-256 of
what stands before. Whatever does not match is a miss and is removed; an entry that was checked since the system
started, and that nobody has written to or moved since, is not read again (`msc.support.file_memo`). The key covers
everything that decides the bytes: C text, weights, compiler version, flags, the machine's features, msc's version.
Nothing is ever unpickled; an entry is code, so the folder must belong to the user and be writable by nobody else, or
the cache is off.
"""

from __future__ import annotations

import hashlib
import os
import stat
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from msc.runtime.recognition import is_built
from msc.support import file_memo
from msc.support.diagnostics import MscError
from msc.support.file_memo import FileMemo
from msc.support.files import append_file, replacing
from msc.support.outputs import OutputGuard, OutputSet

if TYPE_CHECKING:
    pass

MAXIMUM_BYTES = 1 << 30
"""The least recently used entries go when the cache is larger than this."""
MAXIMUM_NOTES = 4096
"""The same of the small files beside them: what is known of files, and which files a model names."""

_MAGIC = b"msc artifact 1\n\0"
_TRAILER_BYTES = len(_MAGIC) + 32 + 8 + 32
_SUFFIX = ".so"
_NOTES = (file_memo.SUFFIX, ".json")
_IN_USE_SECONDS = 60
"""Another process may be about to copy or load what it found so lately."""
_ABANDONED_SECONDS = 3600
"""What a process that was killed left half written; none takes so long."""


def cache_folder() -> Path:
    """`$MSC_CACHE_DIR`, else `$XDG_CACHE_HOME/msc`, else `~/.cache/msc`.

    Relative paths do not count: the standard of XDG_CACHE_HOME says so, and every folder would get a cache of its own.
    """
    chosen, base = os.environ.get("MSC_CACHE_DIR", ""), os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(chosen):
        return Path(chosen)
    return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "msc"


@dataclass(frozen=True)
class Cache:
    """The entries of a folder that only this user can write."""

    folder: Path
    maximum_bytes: int = MAXIMUM_BYTES

    @property
    def memo(self) -> FileMemo:
        """What is known of files."""
        return FileMemo(self.folder)

    def get(self, key: str) -> Path | None:
        """The entry of a key, checked; None if there is none. A damaged entry is removed."""
        path = self._path(key)
        try:
            valid = self.memo.recall(path) == key or self._check(path, key)
        except OSError:
            return None
        if not valid:
            with suppress(OSError):
                path.unlink()
            return None
        with suppress(OSError):
            os.utime(self.memo.note(path))
        return path

    def put(self, key: str, artifact: Path) -> Path | None:
        """Copy a built artifact into the cache; None when that fails."""
        return self._enter(key, lambda path: _copy(key, artifact, path))

    def take(self, key: str, artifact: Path) -> Path | None:
        """Move a built artifact into the cache; None when that fails. It may then have a trailer, which is no harm."""
        return self._enter(key, lambda path: _move(key, artifact, path))

    def _enter(self, key: str, bring: Callable[[Path], None]) -> Path | None:
        path = self._path(key)
        try:
            bring(path)
            self.memo.find_out(path, lambda: key)
        except (OSError, MscError):
            return None
        self._evict(keep=path)
        return path

    def _check(self, path: Path, key: str) -> bool:
        return self.memo.find_out(path, lambda: key if _is_valid(path, key) else None) is not None

    def place(self, entry: Path, out: Path, guard: OutputGuard | None = None) -> None:
        """Copy an entry to `out`, as it was built; not if that was done before and `out` is as it was left then.

        Raises as `place_artifact`.
        """
        copied = f"copy of {entry.stem}"
        with suppress(OSError):
            if out.is_file() and self.memo.recall(out) == copied and not out.is_symlink():
                os.utime(out)
                self.memo.find_out(out, lambda: copied)
                return
        place_artifact(entry, out, guard)
        with suppress(OSError):
            if out.is_file():
                self.memo.find_out(out, lambda: copied)

    def clear(self) -> int:
        """Remove every entry and all notes; how many entries there were."""
        entries = self._entries()
        _remove(*(path for path, _, _ in entries), *self._notes())
        return len(entries)

    def sizes(self) -> list[int]:
        """The bytes of every entry."""
        return [size for _, size, _ in self._entries()]

    def _notes(self) -> list[Path]:
        with os.scandir(self.folder) as found:
            return [Path(entry.path) for entry in found if entry.name.endswith(_NOTES)]

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}{_SUFFIX}"

    def _entries(self) -> list[tuple[Path, int, float]]:
        """Path, size and last use of every entry."""
        found = list[tuple[Path, int, float]]()
        for path in self.folder.glob(f"*{_SUFFIX}"):
            with suppress(OSError):
                status = path.lstat()
                note = self.memo.note(path)
                found.append((path, status.st_size, (note if note.exists() else path).lstat().st_mtime))
        return found

    def _evict(self, keep: Path) -> None:
        """Remove what was used least recently, while there is too much."""
        entries = sorted(self._entries(), key=lambda entry: entry[2])
        total = sum(size for _, size, _ in entries)
        for path, size, used in entries:
            if total <= self.maximum_bytes or time.time() - used < _IN_USE_SECONDS:
                break
            if path != keep:
                _remove(path, self.memo.note(path))
                total -= size
        notes = self._notes()
        if len(notes) > MAXIMUM_NOTES:
            notes.sort(key=lambda note: note.lstat().st_mtime)
            _remove(*notes[: MAXIMUM_NOTES // 2])
        _remove(*(path for path in self.folder.glob(".*.tmp") if _age(path) > _ABANDONED_SECONDS))


def _copy(key: str, artifact: Path, path: Path) -> None:
    with replacing(path, durable=False) as target:
        append_file(artifact, target)
        target.write(_trailer(key, artifact))


def _move(key: str, artifact: Path, path: Path) -> None:
    """Where both lie in one file system; else as `_copy`."""
    if artifact.stat().st_dev != path.parent.stat().st_dev:
        _copy(key, artifact, path)
        return
    trailer = _trailer(key, artifact)
    with artifact.open("ab") as file:
        file.write(trailer)
    artifact.replace(path)


def _age(path: Path) -> float:
    """Seconds since a file was written; none for one that has gone."""
    with suppress(OSError):
        return time.time() - path.lstat().st_mtime
    return 0.0


def _remove(*paths: Path) -> None:
    for path in paths:
        with suppress(OSError):
            path.unlink()


def place_artifact(source: Path, out: Path, guard: OutputGuard | None = None) -> None:
    """Copy an artifact, from the cache or elsewhere, as it was built: without the trailer.

    Raises MSC0004, and with a guard MSC0010 and MSC0011.
    """
    with OutputSet(guard or OutputGuard(force=True), durable=False) as files, files.open(out, is_library) as target:
        append_file(source, target)
        with source.open("rb") as opened:
            target.truncate(target.tell() - trailer_bytes(opened.fileno(), target.tell()))


def is_library(path: Path) -> bool:
    """Whether msc built this shared library. Raises OSError."""
    return is_built(path, "so")


def trailer_bytes(descriptor: int, size: int) -> int:
    """How many of the last of `size` bytes are what the cache put behind an artifact: 0 of a file from elsewhere."""
    start = size - _TRAILER_BYTES
    return _TRAILER_BYTES if start >= 0 and os.pread(descriptor, len(_MAGIC), start) == _MAGIC else 0


def open_cache(folder: Path | None = None) -> Cache | None:
    """The user's cache, or None when its folder cannot be made or is not theirs alone."""
    path = folder or cache_folder()
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        return Cache(path) if is_private(path) else None
    except OSError:
        return None


def is_private(folder: Path) -> bool:
    """A real folder, ours, that nobody else may write."""
    status = folder.lstat()
    ours = not hasattr(os, "getuid") or status.st_uid == os.getuid()
    return stat.S_ISDIR(status.st_mode) and ours and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _trailer(key: str, artifact: Path) -> bytes:
    size = artifact.stat().st_size
    with artifact.open("rb") as file:
        checksum = _checksum(file.fileno(), size)
    return _MAGIC + bytes.fromhex(key) + size.to_bytes(8, "little") + checksum


def _is_valid(path: Path, key: str) -> bool:
    """Raises OSError when the entry is not there or is no plain file."""
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    try:
        status = os.fstat(descriptor)
        size = status.st_size - _TRAILER_BYTES
        if not stat.S_ISREG(status.st_mode) or size < 0:
            return False
        trailer = os.pread(descriptor, _TRAILER_BYTES, size)
        expected = _MAGIC + bytes.fromhex(key) + size.to_bytes(8, "little")
        return trailer.startswith(expected) and trailer[len(expected) :] == _checksum(descriptor, size)
    finally:
        os.close(descriptor)


def _checksum(descriptor: int, size: int) -> bytes:
    state, position = hashlib.sha256(), 0
    while position < size:
        block = os.pread(descriptor, min(1 << 20, size - position), position)
        if not block:
            break
        state.update(block)
        position += len(block)
    return state.digest()
