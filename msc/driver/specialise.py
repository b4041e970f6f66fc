"""ONNX models whose shapes depend on the values of inputs, as Python functions that compile at their first call."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from os import PathLike, fspath
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from msc.driver.compile import compile_read, generate_c
from msc.driver.options import CompileOptions
from msc.driver.reading_models import Model
from msc.driver.registry import new_context
from msc.driver.stages import STAGE
from msc.runtime.artifact import CompiledModel, load
from msc.runtime.build import BuildOptions, build

if TYPE_CHECKING:
    from msc.dialects.arrays import Array
    from msc.importers.onnx import Imported, SpecialisingModel


def specialise(model: str | PathLike[str], options: CompileOptions | None = None) -> SpecialisingModel:
    """An ONNX file as a function of arrays by name, which gives its outputs by name.

    It is compiled for the shapes of its inputs and for the values of those that decide shapes, once for each. Raises
    MSC07xx, and what compiling raises, at the first call of a kind.
    """
    from msc.importers.onnx import SpecialisingModel
    from msc.importers.onnx.reading import read_model

    path, chosen = Path(fspath(model)), options or CompileOptions()

    def compile_(imported: Imported) -> Callable[[Mapping[str, Array]], Mapping[str, Array]]:
        function = compile_imported(imported, str(path), chosen)
        return lambda inputs: dict(zip(imported.outputs, function(inputs), strict=True))

    return SpecialisingModel(read_model(path), compile_, str(path), path.parent)


def compile_imported(
    imported: Imported, name: str, options: CompileOptions
) -> Callable[[Mapping[str, Array]], Sequence[Array]]:
    """An imported model compiled to C, built and loaded."""
    loaded = compile_loaded(imported_model(imported, name), options)
    return lambda inputs: loaded.outputs(**inputs)


def imported_model(imported: Imported, name: str) -> Model:
    """An imported model at the graph stage, as read from the file `name`."""
    return Model(name, imported.module, STAGE["graph"], Path(name).parent, {}, new_context(), imported)


def compile_loaded(model: Model, options: CompileOptions, flags: tuple[str, ...] = ()) -> CompiledModel:
    """A model compiled to C, built with `flags` after msc's own, and loaded; its files go when it goes."""
    compilation = compile_read(model, options)
    with ExitStack() as files:
        folder = Path(files.enter_context(TemporaryDirectory(prefix="msc-", ignore_cleanup_errors=True)))
        build(generate_c(compilation), compilation.parameters(), "so", folder / "model.so", BuildOptions(flags))
        loaded = load(folder / "model.so")
        weakref.finalize(loaded, files.pop_all().close)
    return loaded
