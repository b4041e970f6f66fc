"""The second compilation of a model is a look-up. Loads no compiler: this is what a user waits for.

An entry of `msc.runtime.cache` is found by a key over what decides its bytes: the model's text, its options, this msc
(its version and its files), the C compiler, the machine, and the contents of the weights. Which weights a model has is
known only when it has been read; so a small recipe beside the entries, found by all the rest, names them. A file whose
size and time of change are those of the recipe is not read again; that time, unlike the time of writing, cannot be set.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import cast

import msc
from msc.driver.options import CompileOptions
from msc.runtime.cache import Cache, open_cache
from msc.support.diagnostics import MscError
from msc.support.files import write_text
from msc.support.hashing import digest, file_digest
from msc.targets.detection import detect_flags, detect_machine

_MAXIMUM_RECIPE_BYTES = 1 << 20


@dataclass(frozen=True)
class Dependency:
    """A file that a model names, relative to the folder of its weights, as it was when the model was compiled."""

    name: str
    size: int
    changed: int
    sha256: str


class ArtifactCache:
    """Shared libraries by model and options."""

    def __init__(self, model: str, options: CompileOptions) -> None:
        self._folder = options.weights or Path(model).parent
        self._store = open_cache()
        self._base = _base_key(model, options)

    def find(self) -> Path | None:
        """The library of an earlier compilation, or None."""
        if self._store is None or self._base is None:
            return None
        recorded = _read_recipe(self._recipe(self._store))
        if recorded is None:
            return None
        hashes = [_current_hash(self._folder, dependency) for dependency in recorded]
        if any(found is None for found in hashes):
            return None
        return self._store.get(self._key(recorded, [found or "" for found in hashes]))

    def put(self, library: Path, files: Iterable[str]) -> Path | None:
        """Keep a library that was compiled from the model and `files`; None when there is no cache for it."""
        if self._store is None or self._base is None:
            return None
        try:
            recorded = [_dependency(self._folder, name) for name in files]
            kept = self._store.put(self._key(recorded, [d.sha256 for d in recorded]), library)
            write_text(self._recipe(self._store), json.dumps([vars(dependency) for dependency in recorded]))
        except (OSError, MscError):
            return None
        return kept

    def _recipe(self, store: Cache) -> Path:
        return store.folder / f"{self._base}.json"

    def _key(self, recorded: Iterable[Dependency], hashes: Iterable[str]) -> str:
        return digest((self._base or "", *(d.name for d in recorded), *hashes))


def _base_key(model: str, options: CompileOptions) -> str | None:
    """Everything but the weights; None when a file cannot be read, of which its reader tells."""
    try:
        text = file_digest(Path(model))
        tuned = file_digest(options.tuned) if options.tuned is not None else ""
    except OSError:
        return None
    machine = (detect_machine(), *sorted(detect_flags()))
    return digest((text, tuned, model, options.key(), msc.__version__, package_fingerprint(), *_compiler(), *machine))


def _compiler() -> tuple[str, ...]:
    """The C compiler by path and time: asking for its version would take longer than all the rest."""
    chosen = os.environ.get("CC", "")
    names = chosen.split()[:1] or ["cc", "gcc", "clang"]
    found = next(filter(None, map(shutil.which, names)), "")
    modified = str(Path(found).stat().st_mtime_ns) if found else ""
    return chosen, str(Path(found).resolve()) if found else "", modified


@cache
def package_fingerprint() -> str:
    """Changes when any file of this msc does: names, sizes and times."""
    root = Path(msc.__file__).parent
    entries = list[str]()
    pending = [str(root)]
    while pending:
        with os.scandir(pending.pop()) as found:
            for entry in found:
                if entry.is_dir(follow_symlinks=False):
                    pending.append(entry.path)
                elif not entry.name.endswith(".pyc"):
                    status = entry.stat()
                    entries.append(f"{entry.path} {status.st_size} {status.st_mtime_ns}")
    return digest(sorted(entries))


def _dependency(folder: Path, name: str) -> Dependency:
    path = folder / name
    status = path.stat()
    return Dependency(name, status.st_size, status.st_ctime_ns, file_digest(path))


def _current_hash(folder: Path, dependency: Dependency) -> str | None:
    try:
        status = (folder / dependency.name).stat()
        if (status.st_size, status.st_ctime_ns) == (dependency.size, dependency.changed):
            return dependency.sha256
        return file_digest(folder / dependency.name)
    except (OSError, ValueError):
        return None


def _read_recipe(path: Path) -> list[Dependency] | None:
    """The recipe of a file; None for anything that is not one."""
    try:
        if path.stat().st_size > _MAXIMUM_RECIPE_BYTES:
            return None
        items = cast(list[dict[str, object]], json.loads(path.read_text("utf-8")))
        return [_from_json(item) for item in items]
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _from_json(item: dict[str, object]) -> Dependency:
    name, size, changed, sha256 = (item[key] for key in ("name", "size", "changed", "sha256"))
    if not (isinstance(size, int) and isinstance(changed, int)):
        raise ValueError("not a recipe")
    return Dependency(str(name), size, changed, str(sha256))
