"""The second compilation of a model is a look-up. Loads no compiler: this is what a user waits for.

An entry of `msc.runtime.cache` is found by a key over what decides its bytes: the model's text, its options, this msc
(its version and its files), the C compiler, the machine, and the contents of the weights. Which weights a model has is
known only when it has been read; so a small recipe beside the entries, found by all the rest, names them. A file that
did not change is not read again (`msc.support.file_memo`).
"""

from __future__ import annotations

import json
import os
import shutil
import stat
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from errno import ELOOP
from functools import cache, partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, cast

import msc
from msc.driver.options import CompileOptions
from msc.runtime.cache import Cache, open_cache
from msc.support.diagnostics import MscError
from msc.support.file_memo import FileMemo, settled
from msc.support.files import write_text
from msc.support.hashing import digest
from msc.support.streams import is_stream
from msc.targets.detection import detect_flags, detect_machine
from msc.targets.files import is_file

if TYPE_CHECKING:
    from msc.driver.models.reading_models import LoadedModel

_MAXIMUM_RECIPE_BYTES = 1 << 20


class ArtifactCache:
    """Shared libraries by model and options."""

    def __init__(self, model: str | LoadedModel, options: CompileOptions) -> None:
        self._started = 0
        self.warnings: Sequence[str] = ()
        """What the library that `find` found keeps for its users to know."""
        self._model = Path(model if isinstance(model, str) else model.path)
        self._beside = tuple(_beside(options))
        self._folder = options.weights or self._model.parent
        self.cache = open_cache()
        of_memory = None if isinstance(model, str) else _contents(model)
        self._make_base = partial(_base_key, model if isinstance(model, str) else None, of_memory, options)
        self._base = None if self.cache is None else self._make_base(self.cache.memo)

    def find(self) -> Path | None:
        """The library of an earlier compilation, or None."""
        if self.cache is None or self._base is None:
            return None
        recipe = _read_recipe(self._recipe(self.cache))
        if recipe is None:
            return None
        names, self.warnings = recipe
        try:
            return self.cache.get(self._key(self.cache, names))
        except (OSError, ValueError):
            return None

    def inputs(self) -> tuple[Path, ...]:
        """The files that the library of an earlier compilation was made from."""
        recipe = _read_recipe(self._recipe(self.cache)) if self.cache is not None else None
        names = () if recipe is None else recipe[0]
        return (self._model, *self._beside, *(self._folder / name for name in names))

    def begin(self) -> None:
        """Call before a compilation reads its files: what changes from now on has a later time of change."""
        self._started = time.time_ns()
        settled(self._started)

    def put(self, library: Path, files: Iterable[str], warnings: Iterable[str] = ()) -> Path | None:
        """Move a library that was compiled from the model and `files` into the cache; None when there is none for it.

        What changed since the compilation began may have been read before or after: nothing is kept of that.
        """
        if self.cache is None or self._base is None:
            return None
        names = sorted(files)
        kept: Path | None = None
        try:
            if any(self._is_new(self._folder / name) for name in names):
                return None
            if self._make_base(self.cache.memo) != self._base:
                return None
            kept = self.cache.take(self._key(self.cache, names), library)
            recipe = {"files": names, "warnings": list(warnings)}
            write_text(self._recipe(self.cache), json.dumps(recipe), durable=False)
        except (OSError, MscError):
            pass  # the library may have moved already
        return kept

    def _is_new(self, path: Path) -> bool:
        return path.stat().st_ctime_ns > self._started

    def _recipe(self, store: Cache) -> Path:
        return store.folder / f"{self._base}.json"

    def _key(self, store: Cache, names: Iterable[str]) -> str:
        """Raises OSError when one of the files cannot be read, and when its reader has more to check than its bytes."""
        own = [(name, _plain_inside(self._folder, name)) for name in names]
        hashes = [part for name, path in own for part in (name, store.memo.digest(path))]
        return digest((self._base or "", *hashes))


def _plain_inside(folder: Path, name: str) -> Path:
    """A file with one name in a folder, on the way to which there is no link. Raises OSError.

    Readers decide about all others: where a link leads can change without a change of any bytes, and what is read
    through one is therefore compiled each time.
    """
    path = folder
    for part in PurePosixPath(name).parts:
        path /= part
        status = path.lstat()
        if part in ("..", "/") or stat.S_ISLNK(status.st_mode):
            raise OSError(ELOOP, "it is no plain file of the folder", str(path))
    if not stat.S_ISREG(path.stat().st_mode) or path.stat().st_nlink != 1:
        raise OSError(ELOOP, "it is no plain file of the folder", str(path))
    return path


def _base_key(model: str | None, contents: str | None, options: CompileOptions, memo: FileMemo) -> str | None:
    """Everything but the weights of a file; None when a file cannot be read, of which its reader tells.

    Files count by what is in them, not by where they lie; the model's also by its name, which its stage and the symbols
    of the C follow from. A model in memory counts by its module, whatever lines it comes from, and its weights.
    """
    if model is not None and is_stream(model):
        return None
    try:
        text, name = (contents or "", "") if model is None else (memo.digest(Path(model)), Path(model).name)
        beside = [memo.digest(path) for path in _beside(options)]
    except OSError:
        return None
    machine = (detect_machine(), *sorted(detect_flags()))
    chosen = (name, replace(options, weights=None, tuned=None).key())
    return digest((text, *beside, *chosen, msc.__version__, package_fingerprint(), *_compiler(), *machine))


def _contents(model: LoadedModel) -> str:
    """What a model in memory holds."""
    import hashlib

    import numpy as np

    from msc.ir.locations import format_module

    state = hashlib.sha256()
    others = [] if model.imported is None else [other for _, other in sorted(model.imported.samples.items())]
    known = set[int]()
    for module, weights in ((model.module, model.weights()), *((other.module, other.weights) for other in others)):
        state.update(format_module(module).encode())
        for name, array in sorted(weights.items()):
            state.update(f"{name} {array.dtype} {array.shape}".encode())
            if id(array) not in known:
                known.add(id(array))
                state.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return state.hexdigest()


def _beside(options: CompileOptions) -> Iterator[Path]:
    """The files that options name besides the model and its weights."""
    if options.tuned is not None:
        yield options.tuned
    if options.march is not None and is_file(options.march):
        yield Path(options.march)


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


def _read_recipe(path: Path) -> tuple[list[str], list[str]] | None:
    """The files that a recipe names, and the warnings about the library; None for anything that is no recipe."""
    try:
        if path.stat().st_size > _MAXIMUM_RECIPE_BYTES:
            return None
        recipe: object = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return None
    parts = cast("dict[str, object]", recipe) if isinstance(recipe, dict) else {}
    files, warnings = (_texts(parts.get(name)) for name in ("files", "warnings"))
    return None if files is None or warnings is None else (files, warnings)


def _texts(items: object) -> list[str] | None:
    """A list of strings; None for anything else."""
    found = [item for item in cast("list[object]", items) if isinstance(item, str)] if isinstance(items, list) else None
    return found if found is not None and len(found) == len(cast("list[object]", items)) else None
