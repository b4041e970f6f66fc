"""A short way to write an ONNX graph by hand, and the count of its multiply-adds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper, numpy_helper

OPSET = 20
IR_VERSION = 10


class OnnxGraph:
    """Nodes in order over named weights; every node has one result, and its name is the value passed on."""

    def __init__(self, weights: Mapping[str, npt.NDArray[np.float32]]) -> None:
        self.weights = dict(weights)
        self.nodes: list[onnx.NodeProto] = []

    def op(self, kind: str, *operands: str, **attributes: Any) -> str:
        """Append one node of the default domain and return its result's name."""
        result = f"{kind.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(operands), [result], **attributes))
        return result

    def constant(self, name: str, value: float) -> str:
        """A scalar f32 under a name."""
        self.weights[name] = np.asarray(value, dtype=np.float32)
        return name

    def finish(self, name: str, inputs: Mapping[str, Sequence[int]], shape: Sequence[int]) -> bytes:
        """The checked model as bytes: f32 inputs by name and shape, and the last node's f32 result."""
        values = [helper.make_tensor_value_info(key, onnx.TensorProto.FLOAT, size) for key, size in inputs.items()]
        output = helper.make_tensor_value_info(self.nodes[-1].output[0], onnx.TensorProto.FLOAT, shape)
        data = [numpy_helper.from_array(value, key) for key, value in self.weights.items()]
        graph = helper.make_graph(self.nodes, name, values, [output], data)
        opsets = [helper.make_opsetid("", OPSET)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION)
        checker: Any = onnx.checker
        checker.check_model(model, full_check=True)
        return model.SerializeToString()


def _shapes(model: onnx.ModelProto) -> dict[str, tuple[int, ...]]:
    graph = onnx.shape_inference.infer_shapes(model).graph
    shapes = {value.name: tuple(value.dims) for value in graph.initializer}
    for value in (*graph.input, *graph.value_info, *graph.output):
        shapes[value.name] = tuple(dim.dim_value for dim in value.type.tensor_type.shape.dim)
    return shapes


def _node_multiply_adds(node: onnx.NodeProto, shapes: Mapping[str, tuple[int, ...]]) -> int:
    result = math.prod(shapes[node.output[0]])
    if node.op_type == "Conv":
        return result * math.prod(shapes[node.input[1]][1:])
    if node.op_type == "Gemm":
        return result * shapes[node.input[1]][1]
    if node.op_type == "MatMul":
        return result * shapes[node.input[0]][-1]
    return 0


def multiply_adds(data: bytes) -> int:
    """Multiply-adds of all convolutions and matrix products; element-wise work is not counted.

    A ``Gemm`` is taken to hold its weights as [out,in] (``transB = 1``), as all graphs here do.
    """
    model = onnx.load_model_from_string(data)
    shapes = _shapes(model)
    return sum(_node_multiply_adds(node, shapes) for node in model.graph.node)
