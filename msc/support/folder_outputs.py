"""Folders of files that appear together, with a manifest by which the next output knows what it may replace."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Protocol

from msc.support.diagnostics import Diagnostic, MscError
from msc.support.files import cannot_write
from msc.support.manifests import MANIFEST, Manifest, manifest_text
from msc.support.outputs import OutputGuard, OutputSet


class Writable(Protocol):
    """What bytes are written to."""

    def write(self, data: bytes | memoryview, /) -> int: ...


class _Summed:
    """A file, with the SHA-256 of what was written to it."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.state = hashlib.sha256()

    def write(self, data: bytes | memoryview, /) -> int:
        self.state.update(data)
        return self._file.write(data)


@dataclass
class FolderOutput:
    """The files of one output in a folder; `digests` has the SHA-256 of each that was written so far.

    A shared folder holds files of others and of earlier outputs, which stay.
    """

    folder: Path
    files: OutputSet
    earlier: Manifest
    is_shared: bool = False
    digests: dict[str, str] = field(default_factory=dict[str, str])

    @contextmanager
    def open(self, name: str) -> Generator[Writable]:
        """A file of the folder. Raises as `OutputSet.open`."""
        with self.files.open(self.folder / name, self.earlier.is_ours) as file:
            summed = _Summed(file)
            yield summed
        self.digests[name] = summed.state.hexdigest()

    def write(self, name: str, data: bytes | str) -> None:
        """Write a whole file, also in a folder below. Raises OSError and as `OutputSet.open`."""
        raw = data.encode("utf-8") if isinstance(data, str) else data
        if "/" in name:
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
        self.files.write(self.folder / name, raw, self.earlier.is_ours)
        self.digests[name] = hashlib.sha256(raw).hexdigest()

    def finish(self, manifest: str | None = None) -> None:
        """Write the manifest; what the earlier one lists and is not written anew goes, but from a shared folder."""
        listed = {**self.earlier.files, **self.digests} if self.is_shared else self.digests
        self.files.write(self.folder / MANIFEST, manifest or manifest_text(listed), self.earlier.is_ours)
        for path in () if self.is_shared else self.earlier.leftovers({*self.digests, MANIFEST}):
            self.files.remove(path)


@contextmanager
def filled_folder(folder: Path, guard: OutputGuard, *, is_shared: bool = False) -> Generator[FolderOutput]:
    """A folder for one output, which is there with all its files when the block ends well.

    Raises MSC0004, also for a folder in which there are files and no manifest, unless it is shared or forced.
    """
    _check_place(folder, guard.force or is_shared)
    if folder.is_dir():
        with OutputSet(guard) as files:
            yield FolderOutput(folder, files, Manifest.of(folder), is_shared)
        return
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=".msc-", suffix=".tmp", dir=folder.parent))
    except (OSError, ValueError) as error:
        raise cannot_write(folder, error) from error
    try:
        with OutputSet(guard) as files:
            yield FolderOutput(draft, files, Manifest(draft), is_shared)
        draft.chmod(0o755 & ~_mask())
        os.rename(draft, folder)
    except OSError as error:
        raise cannot_write(folder, error) from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _mask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _check_place(folder: Path, may_hold_files: bool) -> None:
    try:
        if folder.exists() and not folder.is_dir():
            raise MscError(Diagnostic("MSC0004", f"cannot write '{folder}': it is not a folder"))
        if folder.is_dir() and not may_hold_files and any(folder.iterdir()) and not Manifest.of(folder).files:
            message = f"cannot write '{folder}': the folder holds other files"
            raise MscError(Diagnostic("MSC0004", message, help="name a new folder, or use this one with --force"))
    except OSError as error:
        raise cannot_write(folder, error) from error
