"""Imported models compiled, built and loaded in memory, without the cache."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msc.backends.stage import GRAPH
from msc.driver.compile import compile_read, generate_c
from msc.driver.models.reading_models import LoadedModel
from msc.driver.options import CompileOptions
from msc.driver.passes.registry import new_context
from msc.runtime.artifact import CompiledModel, load_unchanging
from msc.runtime.build import BuildOptions, build
from msc.support.temporary import temporary_folder

if TYPE_CHECKING:
    from msc.dialects.arrays import Array
    from msc.importers.imported import Imported


def compile_imported(
    imported: Imported, name: str, options: CompileOptions
) -> Callable[[Mapping[str, Array]], Sequence[Array]]:
    """An imported model compiled to C, built and loaded."""
    loaded = compile_loaded(imported_model(imported, name), options)
    return lambda inputs: loaded.results(**inputs)


def imported_model(imported: Imported, name: str) -> LoadedModel:
    """An imported model at the graph stage, as read from the file `name`."""
    return LoadedModel(name, imported.module, GRAPH, Path(name).parent, {}, new_context(), imported)


def compile_loaded(model: LoadedModel, options: CompileOptions, flags: tuple[str, ...] = ()) -> CompiledModel:
    """A model compiled to C, built with `flags` after msc's own, and loaded."""
    compilation = compile_read(model, options)
    with temporary_folder("model") as folder:
        path = folder / "model.so"
        build(generate_c(compilation), compilation.parameters(), "so", path, BuildOptions(flags))
        return load_unchanging(path)
