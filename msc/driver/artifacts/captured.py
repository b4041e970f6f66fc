"""Graphs that were captured from Python, compiled as any model is: through the stage table and the cache."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from numpy.typing import NDArray
from safetensors.numpy import save_file  # pyright: ignore[reportUnknownVariableType]
from xdsl.dialects.builtin import ModuleOp, StringAttr

from msc.dialects.ms.attributes import MS_WEIGHTS
from msc.driver.artifacts.libraries import library_of
from msc.driver.options import CompileOptions
from msc.driver.passes.ir_dump import format_module
from msc.runtime.artifact import CompiledModel

_WEIGHTS = "weights.safetensors"


def compile_captured(module: ModuleOp, weights: Mapping[str, NDArray[Any]]) -> CompiledModel:
    """The module as a function on arrays, from the cache if it was compiled before."""
    with tempfile.TemporaryDirectory(prefix="msc-jit-") as name:
        folder = Path(name)
        if weights:
            save_file({k: _contiguous(a) for k, a in weights.items()}, folder / _WEIGHTS)
            module.attributes[MS_WEIGHTS] = StringAttr(_WEIGHTS)
        path = folder / "graph.mir"
        path.write_text(format_module(module), encoding="utf-8")
        return library_of(str(path), CompileOptions()).load()


def _contiguous(array: NDArray[Any]) -> NDArray[Any]:
    return array if array.flags.c_contiguous else array.copy()
