"""An imported model compiled to C, built and loaded: what the C executor runs."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from msc.driver.compile import compile_read, generate_c
from msc.driver.options import CompileOptions
from msc.driver.reading_models import Model
from msc.driver.registry import new_context
from msc.driver.stages import STAGE
from msc.importers.onnx import Imported
from msc.runtime.artifact import load
from msc.runtime.build import BuildOptions
from msc.runtime.build import build as build_program

Array = NDArray[Any]


def build(imported: Imported) -> Callable[[Mapping[str, Array]], Sequence[Array]]:
    """The model as a function of inputs by name; its files go when it goes."""
    options = CompileOptions()
    model = Model("model.mir", imported.module, STAGE["graph"], Path(), {}, new_context(), imported)
    compilation = compile_read(model, options)
    weights = compilation.parameters()
    folder = Path(tempfile.mkdtemp(prefix="msc-"))
    try:
        build_program(generate_c(compilation), weights, "so", folder / "model.so", BuildOptions())
        loaded = load(folder / "model.so")
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    weakref.finalize(loaded, shutil.rmtree, folder, ignore_errors=True)

    def run(inputs: Mapping[str, Array]) -> Sequence[Array]:
        results = loaded(**inputs)
        return results if isinstance(results, tuple) else (results,)

    return run
