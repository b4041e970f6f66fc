"""The suite's light models with seeded random weights, against ONNX Runtime.

Their own weights are constants, under which a permuted or transposed weight gives the same result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import GraphProto, ModelProto
from onnx.backend.test.loader import load_model_tests
from onnx.numpy_helper import from_array, to_array

from msc.importers.onnx.reading.model_file import read_model
from tests.conformance.backend import MscBackend

RELATIVE_ERROR = 1e-3
"""Of the largest result: that of the suite for these models."""

_IR_VERSION = 8
"""Since 4, initialisers need not be inputs."""

Array = NDArray[Any]


def light_cases() -> Iterator[tuple[str, Callable[[], None]]]:
    """For every light model the name of its case, and what raises AssertionError if msc is wrong."""
    root = Path(onnx.__file__).parents[1]
    for case in load_model_tests(kind="real"):
        path = root / (case.url or "")
        yield f"{case.name}_random_weights", lambda path=path: check(randomised(read_model(path)))


def randomised(model: ModelProto) -> ModelProto:
    """The model with every weight, made by ConstantOfShape or stored, replaced by random numbers.

    A softmax at its end goes: where one class takes all, it hides every other.
    """
    random, graph = np.random.default_rng(0), model.graph
    stored = {tensor.name: to_array(tensor) for tensor in graph.initializer}
    made = [node for node in graph.node if node.op_type == "ConstantOfShape"]
    shapes = {node.output[0]: tuple(int(n) for n in stored[node.input[0]]) for node in made}
    shapes |= {name: array.shape for name, array in stored.items() if array.dtype == np.float32 and array.ndim}
    _replace(graph, {name: _weight(shape, random) for name, shape in shapes.items()})
    for node in made:
        graph.node.remove(node)
    last = next(node for node in graph.node if node.output[0] == graph.output[0].name)
    if last.op_type == "Softmax":
        graph.output[0].name = last.input[0]
        graph.node.remove(last)
    model.ir_version = _IR_VERSION
    return model


def _weight(shape: tuple[int, ...], random: np.random.Generator) -> Array:
    """Matrices and filters that keep the size of activations; vectors (scales, variances, biases) about one."""
    if len(shape) < 2:
        return random.uniform(0.5, 1.5, shape).astype(np.float32)
    fan_in = max(int(np.prod(shape[1:])), 1)
    return (random.standard_normal(shape) * np.sqrt(2 / fan_in)).astype(np.float32)


def _replace(graph: GraphProto, weights: Mapping[str, Array]) -> None:
    kept = [tensor for tensor in graph.initializer if tensor.name not in weights]
    new = [from_array(array, name) for name, array in weights.items()]
    del graph.initializer[:]
    graph.initializer.extend([*kept, *new])


def check(model: ModelProto) -> None:
    """Raise AssertionError if msc and ONNX Runtime differ, or if the result is too poor to tell anything."""
    constants = {tensor.name for tensor in model.graph.initializer}
    random = np.random.default_rng(1)
    inputs = {
        info.name: random.standard_normal([d.dim_value for d in info.type.tensor_type.shape.dim]).astype(np.float32)
        for info in model.graph.input
        if info.name not in constants
    }
    runtime: Any = onnxruntime  # its types are partly unknown
    options = runtime.SessionOptions()
    options.log_severity_level = 3  # errors: these models' old form is warned of, weight by weight
    session = runtime.InferenceSession(model.SerializeToString(), options)
    (wanted,) = cast("list[Array]", session.run(None, inputs))
    assert np.sum(np.abs(wanted) > 1e-3 * np.max(np.abs(wanted))) > 10, "nearly all of the result is zero"
    (found,) = MscBackend.prepare(model).run(list(inputs.values()))
    np.testing.assert_allclose(found, wanted, rtol=0, atol=RELATIVE_ERROR * float(np.max(np.abs(wanted))))
