"""A short way to write an ONNX graph by hand, and the count of its multiply-adds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper, numpy_helper

OPSET = 20
IR_VERSION = 10
ATTENTION = 23, 11
"""The versions of the first opset that has the operator `Attention`: only models that use it need them."""
SEED = 3


class OnnxGraph:
    """Nodes in order over named weights; every node has one result, and its name is the value passed on."""

    def __init__(self, weights: Mapping[str, npt.NDArray[np.float32]]) -> None:
        self.weights: dict[str, npt.NDArray[np.generic]] = dict(weights)
        self.nodes: list[onnx.NodeProto] = []
        self._generator = np.random.default_rng(SEED)

    def op(self, kind: str, *operands: str, **attributes: Any) -> str:
        """Append one node of the default domain and return its result's name."""
        result = f"{kind.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(operands), [result], **attributes))
        return result

    def constant(self, name: str, value: float) -> str:
        """A scalar f32 under a name."""
        self.weights[name] = np.asarray(value, dtype=np.float32)
        return name

    def integers(self, name: str, *values: int) -> str:
        """A vector of i64 under a name, as operators take axes."""
        self.weights[name] = np.asarray(values, dtype=np.int64)
        return name

    def weight(self, name: str, *shape: int, fan_in: int | None = None) -> str:
        """A seeded f32 weight; of mean 0 and variance 2 / `fan_in`, which keeps signals alive (He et al. 2015)."""
        scale = math.sqrt(2 / (fan_in or math.prod(shape[1:]) or 1))
        self.weights[name] = (self._generator.standard_normal(shape) * scale).astype(np.float32)
        return name

    def norm(self, name: str, channels: int) -> list[str]:
        """Seeded scale, offset, mean and variance of a batch norm, near those of an identity."""
        ranges = {"scale": (0.8, 1.2), "offset": (-0.1, 0.1), "mean": (-0.1, 0.1), "variance": (0.8, 1.2)}
        for part, (low, high) in ranges.items():
            self.weights[f"{name}.{part}"] = self._generator.uniform(low, high, channels).astype(np.float32)
        return [f"{name}.{part}" for part in ranges]

    def finish(self, name: str, inputs: Mapping[str, Sequence[int | str]]) -> bytes:
        """The checked model as bytes: f32 inputs by name and shape, and the last node's result."""
        values = [helper.make_tensor_value_info(key, onnx.TensorProto.FLOAT, size) for key, size in inputs.items()]
        output = helper.make_empty_tensor_value_info(self.nodes[-1].output[0])
        data = [numpy_helper.from_array(value, key) for key, value in self.weights.items()]
        graph = helper.make_graph(self.nodes, name.replace("-", "_"), values, [output], data)
        has_attention = any(node.op_type == "Attention" for node in self.nodes)
        opset, version = ATTENTION if has_attention else (OPSET, IR_VERSION)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=version)
        inferred = onnx.shape_inference.infer_shapes(model, strict_mode=True)
        model.graph.output[0].CopyFrom(inferred.graph.output[0])
        checker: Any = onnx.checker
        checker.check_model(model)
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
    if node.op_type == "Attention":
        return result * (shapes[node.input[1]][-2] + 1)
    return 0


def multiply_adds(path: Path) -> int:
    """Multiply-adds of all convolutions and matrix products of a model that ``OnnxGraph`` wrote.

    A ``Gemm`` is taken to hold its weights as [out,in] (``transB = 1``) and an ``Attention`` to be causal, with half of
    its two products, as all graphs here do.
    """
    model = _loaded(path)
    shapes = _shapes(model)
    return sum(_node_multiply_adds(node, shapes) for node in model.graph.node)


def weight_bytes(path: Path) -> int:
    """The size of all initialisers, wherever they stand."""
    tensors = _loaded(path).graph.initializer
    return sum(math.prod(tensor.dims) * _element_bytes(tensor.data_type) for tensor in tensors)


def _loaded(path: Path) -> onnx.ModelProto:
    untyped: Any = onnx
    return untyped.load_model(path, load_external_data=False)


def _element_bytes(data_type: int) -> int:
    return helper.tensor_dtype_to_np_dtype(data_type).itemsize
