"""Small ONNX models for tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import FunctionProto, ModelProto, NodeProto, TensorProto, ValueInfoProto
from onnx.helper import make_graph, make_model, make_node, make_opsetid, make_tensor_value_info
from onnx.numpy_helper import from_array

Shape = Sequence[int | str | None] | None

HOSTILE_NAMES = (
    "*/ evil",
    "*/ int evil; /*",
    "// \\",
    "a\nb",
    "#include <evil>",
    "$(id)",
    "$(touch pwned)",
    "`touch pwned`",
    "-rf",
    "nul\0l",
    "\u202eabc",
    "while",
    "a-b",
    "a_b",
    "??/",
    '";',
    "%s%n",
    "../up",
    "x" * 1_000_000,
)
"""Names that end comments, call commands, or mean something to C, to printf or to a file system."""


def tensor(name: str, shape: Shape, kind: int = TensorProto.FLOAT) -> ValueInfoProto:
    """A graph input or output."""
    return make_tensor_value_info(name, kind, shape)


def node(operator: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any) -> NodeProto:
    """A node."""
    return make_node(operator, list(inputs), list(outputs), **attributes)


def model(
    nodes: Sequence[NodeProto],
    inputs: Sequence[ValueInfoProto],
    outputs: Sequence[ValueInfoProto],
    constants: dict[str, NDArray[Any]] | None = None,
    *,
    opset: int = 17,
    functions: Sequence[FunctionProto] = (),
    domains: Sequence[str] = (),
) -> ModelProto:
    """A model of one graph."""
    initialisers = [from_array(array, name) for name, array in (constants or {}).items()]
    graph = make_graph(list(nodes), "g", list(inputs), list(outputs), initialisers)
    imports = [make_opsetid("", opset), *(make_opsetid(domain, 1) for domain in domains)]
    return make_model(graph, opset_imports=imports, functions=list(functions))


def classifier() -> ModelProto:
    """A convolution, a shape that is computed, a matrix product, and a sum whose axes are an input."""
    rng = np.random.default_rng(0)
    nodes = [
        node("Conv", ["x", "conv.w"], ["c"], name="conv1", pads=[1, 1, 1, 1]),
        node("Relu", ["c"], ["r"]),
        node("Shape", ["r"], ["s"]),
        node("Gather", ["s", "zero"], ["b"]),
        node("Unsqueeze", ["b", "first"], ["b1"]),
        node("Concat", ["b1", "rest"], ["shape"], axis=0),
        node("Reshape", ["r", "shape"], ["f"]),
        node("Gemm", ["f", "fc.w"], ["y"], transB=1),
        node("ReduceSum", ["y", "axes"], ["z"], keepdims=0),
    ]
    constants = {
        "conv.w": rng.standard_normal((4, 3, 3, 3)).astype(np.float32),
        "fc.w": rng.standard_normal((5, 4 * 6 * 6)).astype(np.float32),
        "zero": np.array(0),
        "first": np.array([0]),
        "rest": np.array([-1]),
    }
    inputs = [tensor("x", ["batch", 3, 6, 6]), tensor("axes", [1], TensorProto.INT64)]
    return model(nodes, inputs, [tensor("z", None)], constants)
