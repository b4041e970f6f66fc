"""Temporary folders that do not stay: each goes with its use, with the program, or at the next start of any msc.

A folder is private and holds a file that its process keeps locked. Who finds that file unlocked knows that the process
has ended, however it did, and removes the folder.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock

from msc.support.diagnostics import Diagnostic, MscError

_PREFIX = "msc-"
_LOCK = ".in-use"

_kept: dict[Path, int] = {}
"""Folder -> descriptor of its lock."""
_guard = Lock()


def make_temporary(purpose: str) -> Path:
    """A new private folder `msc-<purpose>-...`; `remove_temporary` removes it. Raises MSC0021."""
    folder: Path | None = None
    try:
        if not _kept:
            sweep(Path(tempfile.gettempdir()))
        folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{purpose}-"))
        descriptor = _locked_file(folder)
    except OSError as error:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
        message = f"no temporary folder can be made: {error.strerror or error}"
        raise MscError(Diagnostic("MSC0021", message, help="TMPDIR=FOLDER names a folder with room")) from error
    with _guard:
        _kept[folder] = descriptor
    return folder


def _locked_file(folder: Path) -> int:
    """The file that says that the folder is in use. It gets its name locked: nobody ever finds it unlocked before."""
    unnamed = folder / f"{_LOCK}.new"
    descriptor = os.open(unnamed, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    _lock(descriptor)
    unnamed.rename(folder / _LOCK)
    return descriptor


def remove_temporary(folder: Path) -> None:
    """Remove a folder of `make_temporary`."""
    shutil.rmtree(folder, ignore_errors=True)
    _forget(folder)


def leave_temporary(folder: Path) -> None:
    """Let a folder stay, for a person to look into."""
    with suppress(OSError):
        (folder / _LOCK).unlink()
    _forget(folder)


def remove_all_temporary() -> None:
    """Remove all folders of this process, before it ends without further ado."""
    for folder in list(_kept):
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def temporary_folder(purpose: str) -> Generator[Path]:
    """A folder of `make_temporary` for a block. Raises MSC0021."""
    folder = make_temporary(purpose)
    try:
        yield folder
    finally:
        remove_temporary(folder)


def sweep(parent: Path) -> None:
    """Remove the folders in `parent` of processes that have ended: this user's alone, and no links."""
    with suppress(OSError):
        for entry in os.scandir(parent):
            if entry.name.startswith(_PREFIX):
                _sweep_one(Path(entry.path))


def _sweep_one(folder: Path) -> None:
    try:
        status = folder.lstat()
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
            return
        descriptor = os.open(folder / _LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return
    try:
        if _lock(descriptor):
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> bool:
    """Whether nobody else has the lock. Nothing is swept where there are no locks."""
    try:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (ImportError, OSError):
        return False
    return True


def _forget(folder: Path) -> None:
    with _guard:
        descriptor = _kept.pop(folder, None)
    if descriptor is not None:
        with suppress(OSError):
            os.close(descriptor)
