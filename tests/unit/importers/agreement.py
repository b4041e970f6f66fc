"""Models imported, interpreted and compiled, whose results are held against ONNX Runtime."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto

from msc.driver.artifacts.libraries import compile_module
from msc.driver.options import CompileOptions
from msc.importers.imported import Imported
from msc.importers.onnx import import_proto
from msc.interp import evaluate
from msc.ir.verification import verify_module

Array = NDArray[Any]
IR_VERSION = 10
"""What every ONNX Runtime reads that the tests meet."""


def names(imported: Imported) -> list[str]:
    """The operations of a module at all depths."""
    return [op.name for op in imported.module.walk()]


def normal(*shape: int, seed: int = 0) -> Array:
    """Normal f32 numbers."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def compile_imported(imported: Imported, name: str = "model.onnx") -> Callable[[Mapping[str, Array]], Sequence[Array]]:
    """An imported model compiled, as a function on named inputs."""
    compiled = compile_module(imported.module, imported.weights, CompileOptions(), name=name, use_cache=False)
    return lambda inputs: compiled.results(**inputs)


def agreed(made: ModelProto, inputs: Mapping[str, Array], input_values: Mapping[str, Array] | None = None) -> Imported:
    """The imported model; by the interpreter and as C it gives what ONNX Runtime gives."""
    runtime: Any = importlib.import_module("onnxruntime")
    made.ir_version = IR_VERSION
    session = runtime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    wanted = session.run(None, dict(inputs))
    bound = input_values or {}
    given = {name: array for name, array in inputs.items() if name not in bound}
    imported = import_proto(made, input_values=bound)
    verify_module(imported.module)
    compiled = compile_imported(import_proto(made, input_values=bound))
    for results in (evaluate(imported.module, given, imported.weights), compiled(given)):
        for got, expected in zip(results, wanted, strict=True):
            np.testing.assert_allclose(got, expected, rtol=2e-5, atol=1e-5)
    return imported
