"""A shared library of a model, from the cache or by compiling: what running, timing and `msc.compile` go through."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from msc.driver.artifacts.artifact_cache import ArtifactCache
from msc.driver.options import CompileOptions, Reporting
from msc.runtime.cache import Cache, place_artifact
from msc.support.notices import warn
from msc.support.outputs import OutputGuard
from msc.support.temporary import make_temporary, remove_temporary

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from msc.dialects.arrays import Array
    from msc.driver.compile import Compilation
    from msc.driver.models.reading_models import LoadedModel
    from msc.runtime.artifact import CompiledModel


@dataclass(frozen=True)
class Library:
    """A shared library, in a cache or in a temporary folder that goes with it, or where the user has it."""

    path: Path
    cache: Cache | None = None
    temporary: Path | None = None
    inputs: tuple[Path, ...] = ()
    compilation: Compilation | None = None

    def place(self, out: Path, guard: OutputGuard) -> None:
        """Copy the library to `out`. Raises MSC0004, MSC0010 and MSC0011."""
        try:
            if self.cache is not None:
                self.cache.place(self.path, out, guard)
            else:
                place_artifact(self.path, out, guard)
        finally:
            if self.temporary is not None:
                remove_temporary(self.temporary)

    def load(self) -> CompiledModel:
        """The model, callable. A temporary folder is no longer needed then."""
        from msc.runtime.artifact import load, load_unchanging

        if self.cache is None and self.temporary is None:
            return load(self.path)
        try:
            return load_unchanging(self.path)
        finally:
            if self.temporary is not None:
                remove_temporary(self.temporary)


def compile_module(
    module: ModuleOp,
    weights: Mapping[str, Array],
    options: CompileOptions,
    *,
    name: str = "model",
    use_cache: bool = True,
    samples: Mapping[tuple[int, ...], tuple[ModuleOp, Mapping[str, Array]]] | None = None,
) -> CompiledModel:
    """A module at the graph stage, with the values of its parameters, as a function on arrays.

    It comes from the cache if an equal one was compiled: the key is what the module and the weights hold. The module
    stays as it is. `name` is what messages call it. One whose sizes the options leave open is that of the largest;
    `samples` are the same module at others, and their weights. Raises what compiling raises.
    """
    from msc.driver.models.dimensions import leave_open
    from msc.driver.models.reading_models import LoadedModel
    from msc.importers.imported import Imported

    leave_open(module, options.open_dims)
    others = {sizes: Imported(*sample) for sizes, sample in (samples or {}).items()}
    model = LoadedModel.in_memory(Imported(module, weights, samples=others), options.backend, name)
    return library_of(model, options, use_cache=use_cache).load()


def library_of(
    model: str | LoadedModel, options: CompileOptions, reporting: Reporting | None = None, *, use_cache: bool = True
) -> Library:
    """Compile a model, or find it compiled. A `.so` is taken as it is. Raises what compiling raises."""
    if isinstance(model, str) and model.lower().endswith(".so"):
        return Library(Path(model))
    seen = reporting or Reporting()
    store = ArtifactCache(model, options) if use_cache else None
    found = store.find() if store is not None and seen.is_silent else None
    if store is not None and found is not None:
        if store.warnings:
            from msc.driver.compile import slow_kernel

            warn(*map(slow_kernel, store.warnings))
        return Library(found, store.cache, inputs=store.inputs())
    return _build(model, options, seen, store)


def _build(
    model: str | LoadedModel, options: CompileOptions, reporting: Reporting, store: ArtifactCache | None
) -> Library:
    from msc.dialects.ms.warnings import warnings_of
    from msc.driver.artifacts.emission import emit
    from msc.driver.artifacts.forms import Output

    folder = make_temporary("model")
    kept: Path | None = None
    if store is not None:
        store.begin()
    try:
        compilation = emit(model, Output("so", folder / "model.so", options.backend), options, reporting)
        if store is not None:
            kept = store.put(folder / "model.so", compilation.model.weight_files(), warnings_of(compilation.module))
        if store is not None and kept is not None:
            return Library(kept, store.cache, None, compilation.input_files(), compilation)
        if store is not None and not (folder / "model.so").is_file():
            # The cache took it, and another program emptied the cache before it was entered.
            return _build(model, options, reporting, None)
        return Library(folder / "model.so", None, folder, compilation.input_files(), compilation)
    finally:
        if kept is not None or not (folder / "model.so").is_file():
            remove_temporary(folder)
