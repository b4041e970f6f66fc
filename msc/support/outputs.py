"""How files of the user's are written: all files of one output or none, and nothing of theirs replaced in silence.

What is no regular file, a device, a FIFO, an open descriptor (`/dev/stdout`), is written into. Links are followed: what
a link points to is replaced, the link stays. A regular file is replaced by renaming a finished one over it.
"""

from __future__ import annotations

import os
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from errno import EISDIR, ENXIO
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from msc.support import streams
from msc.support.destinations import Destination, resolved
from msc.support.diagnostics import Diagnostic, MscError
from msc.support.escaping import printable
from msc.support.files import cannot_write, default_mode

Recogniser = Callable[[Path], bool]
"""Whether msc made a regular file, and nobody changed it since. It may raise OSError."""

_BUFFERED_BYTES = 1 << 24
_PAUSE = 0.02


def anything(path: Path) -> bool:
    """The recogniser for files that are msc's by their place."""
    del path
    return True


_ADVICE = "name another file, or replace it with --force, in Python with force=True"


@dataclass(frozen=True)
class OutputGuard:
    """What an output must not replace: the files that it is made from, and files that msc did not make."""

    inputs: tuple[Path, ...] = ()
    force: bool = False

    def check(self, path: Path, is_ours: Recogniser) -> None:
        """Raises MSC0010 for an input and MSC0011 for a file of somebody else's, unless forced."""
        found = self._found(path)
        if found is None:
            return
        self.check_inputs(path)
        if found.st_size and not _recognised(path, is_ours):
            message = f"'{path}' is there already, and is no file that msc wrote for this and nobody changed since"
            raise MscError(Diagnostic("MSC0011", message, help=_ADVICE))

    def check_inputs(self, path: Path) -> None:
        """Raises MSC0010 for an input, unless forced."""
        found = self._found(path)
        if found is not None and any(_is_same(found, file) for file in self.inputs):
            message = f"'{path}' is read to make this output, which would replace it"
            raise MscError(Diagnostic("MSC0010", message, help=_ADVICE))

    def _found(self, path: Path) -> os.stat_result | None:
        """A regular file that is there and that may not simply be replaced."""
        if self.force or destination(path).is_stream:
            return None
        try:
            found = os.stat(path)
        except (OSError, ValueError):
            return None
        return found if stat.S_ISREG(found.st_mode) else None


def _is_same(found: os.stat_result, file: Path) -> bool:
    with suppress(OSError, ValueError):
        return os.path.samestat(found, os.stat(file))
    return False


def _recognised(path: Path, is_ours: Recogniser) -> bool:
    with suppress(OSError):
        return is_ours(path)
    return False


def destination(path: Path) -> Destination:
    """Where a path leads. Raises MSC0004 for links without end."""
    try:
        return resolved(path)
    except (OSError, ValueError) as error:
        raise cannot_write(path, error) from error


@dataclass
class _Draft:
    """What will be in a file: in a file beside it, or, for what is written into, in a buffer."""

    path: Path
    to: Destination
    text: IO[bytes]
    temporary: Path | None
    executable: bool


@dataclass
class OutputSet:
    """Files of one output. They appear when the block ends well; else there is what was there before.

    If it is `durable`, that holds for a loss of power too, which takes the time that the disk takes to write the files.
    """

    guard: OutputGuard = field(default_factory=OutputGuard)
    durable: bool = True
    _drafts: list[_Draft] = field(default_factory=list[_Draft])
    _removed: list[Path] = field(default_factory=list[Path])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        try:
            if kind is None:
                self._commit()
        finally:
            for draft in self._drafts:
                with suppress(OSError):  # what is left in its buffer may not fit the disk
                    draft.text.close()
                _unlink(draft.temporary)

    @contextmanager
    def open(self, path: Path, is_ours: Recogniser, *, executable: bool = False) -> Generator[IO[bytes]]:
        """A file for the bytes of `path`. Raises MSC0004 (cannot write there), MSC0010 and MSC0011 (`Guard.check`)."""
        self.guard.check(path, is_ours)
        to = destination(path)
        try:
            draft = self._draft(path, to, executable)
            yield draft.text
            draft.text.flush()
            if draft.temporary is not None:
                if self.durable:
                    os.fsync(draft.text.fileno())
                draft.text.close()
        except (OSError, ValueError) as error:
            raise cannot_write(path, error) from error

    def write(self, path: Path, data: bytes | str, is_ours: Recogniser, *, executable: bool = False) -> None:
        """Write a whole file. Raises as `open`."""
        with self.open(path, is_ours, executable=executable) as file:
            file.write(data.encode("utf-8") if isinstance(data, str) else data)

    def remove(self, path: Path) -> None:
        """Have a file of an earlier output go when the new ones appear."""
        self._removed.append(path)

    def _draft(self, path: Path, to: Destination, executable: bool) -> _Draft:
        if to.is_stream:
            draft = _Draft(path, to, _buffer(), None, executable)
        else:
            if to.path.is_dir():
                raise IsADirectoryError(EISDIR, os.strerror(EISDIR))
            descriptor, name = tempfile.mkstemp(prefix=".msc-", suffix=".tmp", dir=to.path.parent)
            draft = _Draft(path, to, os.fdopen(descriptor, "wb"), Path(name), executable)
        self._drafts.append(draft)
        return draft

    def _commit(self) -> None:
        """Streams first: what went into them does not come back, and files can still be left as they were."""
        several = len(self._drafts) + len(self._removed) > 1
        for draft in self._drafts:
            if draft.temporary is None:
                _pour(draft)
        with _Exchange() as exchange:
            for path in self._removed:
                exchange.remove(path)
            for draft in self._drafts:
                if draft.temporary is not None:
                    exchange.place(draft, keep=several)
        for watching in _watching:
            watching += [draft.path for draft in self._drafts if draft.temporary is not None]


_watching: list[list[Path]] = []


@contextmanager
def written_files() -> Generator[list[Path]]:
    """The files that output sets put in their places while the block runs, by the names that they were asked for by."""
    found: list[Path] = []
    _watching.append(found)
    try:
        yield found
    finally:
        _watching.remove(found)


class _Exchange:
    """Files put in the places of others, which come back if the block ends ill."""

    def __init__(self) -> None:
        self._backups: list[tuple[Path, Path]] = []
        self._placed: list[Path] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            for path in self._placed:
                _unlink(path)
        for backup, path in self._backups:
            if kind is None:
                _unlink(backup)
                with suppress(OSError):  # as soon as a folder is not empty
                    for folder in path.parents:
                        folder.rmdir()
            else:
                with suppress(OSError):
                    os.replace(backup, path)

    def place(self, draft: _Draft, *, keep: bool) -> None:
        """Rename a finished file to its place; `keep` what was there until the end. Raises MSC0004."""
        assert draft.temporary is not None
        place = draft.to.path
        try:
            os.chmod(draft.temporary, default_mode(executable=draft.executable))
            if keep and place.exists():
                self.remove(place)
            os.replace(draft.temporary, place)
        except OSError as error:
            raise cannot_write(draft.path, error) from error
        self._placed.append(place)

    def remove(self, path: Path) -> None:
        """Rename a file aside. Raises MSC0004."""
        backup = path.with_name(f".msc-{os.urandom(6).hex()}.tmp")
        try:
            os.rename(path, backup)
        except FileNotFoundError:
            return
        except OSError as error:
            raise cannot_write(path, error) from error
        self._backups.append((backup, path))


def _buffer() -> IO[bytes]:
    return tempfile.SpooledTemporaryFile(_BUFFERED_BYTES)


def _pour(draft: _Draft) -> None:
    """Write a buffer into what is no regular file. A FIFO waits a while for its reader. Raises MSC0004."""
    draft.text.seek(0)
    try:
        if draft.to.descriptor is not None:
            _flush_standard_streams()
            descriptor = os.dup(draft.to.descriptor)
        else:
            descriptor = _opened(draft.to.path)
        with os.fdopen(descriptor, "wb") as file:
            shutil.copyfileobj(draft.text, file, 1 << 20)
    except OSError as error:
        raise cannot_write(draft.path, error) from error


def _opened(path: Path) -> int:
    """A descriptor of what is no regular file. Raises OSError, also for a FIFO from which nobody reads."""
    flags, deadline = os.O_WRONLY | getattr(os, "O_NOCTTY", 0), time.monotonic() + streams.PATIENCE
    if not stat.S_ISFIFO(os.stat(path).st_mode):
        return os.open(path, flags)
    while True:
        try:
            descriptor = os.open(path, flags | os.O_NONBLOCK)
        except OSError as error:
            if error.errno != ENXIO:
                raise
            if time.monotonic() > deadline:
                raise TimeoutError(0, f"nobody read from it for {streams.PATIENCE:g} seconds") from error
            time.sleep(_PAUSE)
        else:
            os.set_blocking(descriptor, True)
            return descriptor


def _flush_standard_streams() -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()


def print_text(text: str) -> None:
    """Write to the standard output. Raises MSC0004 where that is closed or full, and BrokenPipeError."""
    stream: IO[str] | None = sys.stdout
    if stream is None:
        raise MscError(Diagnostic("MSC0004", "cannot write to the standard output: it is closed"))
    try:
        stream.write(printable(text) if stream.isatty() else text)
        stream.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise cannot_write("the standard output", error) from error


def _unlink(path: Path | None) -> None:
    if path is not None:
        with suppress(OSError):
            os.unlink(path)
