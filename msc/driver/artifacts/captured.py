"""Graphs that were captured from Python, compiled as any model is: through the stage table and the cache."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp

from msc.backends.stage import GRAPH
from msc.driver.artifacts.libraries import library_of
from msc.driver.options import CompileOptions
from msc.formats.own_files import save
from msc.importers.imported import Imported
from msc.runtime.artifact import CompiledModel
from msc.support.temporary import temporary_folder


def compile_captured(module: ModuleOp, weights: Mapping[str, NDArray[Any]]) -> CompiledModel:
    """The module as a function on arrays, from the cache if it was compiled before."""
    with temporary_folder("jit") as folder:
        path = folder / f"graph{GRAPH.extension}"
        save(Imported(module, weights), path)
        return library_of(str(path), CompileOptions()).load()
