"""Networks written as ``OnnxGraph`` as a PyTorch module: straight-line code from the same ONNX nodes and weights.

PyTorch is taken as untyped here: its stubs leave most of these functions partly unknown.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

import onnx

from benchmarks.onnx_graph import OnnxGraph

torch: Any = importlib.import_module("torch")
fx: Any = importlib.import_module("torch.fx")
functional: Any = torch.nn.functional

_UNIT = (1, 1)
_NO_PADS = (0, 0, 0, 0)


def conv(
    x: Any,
    weight: Any,
    bias: Any = None,
    *,
    strides: Sequence[int] = _UNIT,
    pads: Sequence[int] = _NO_PADS,
    group: int = 1,
) -> Any:
    """ONNX ``Conv`` in two dimensions."""
    top, left, bottom, right = pads
    if (top, left) == (bottom, right):
        return functional.conv2d(x, weight, bias, tuple(strides), (top, left), 1, group)
    return functional.conv2d(functional.pad(x, (left, right, top, bottom)), weight, bias, tuple(strides), 0, 1, group)


def batch_norm(x: Any, scale: Any, offset: Any, mean: Any, variance: Any, *, epsilon: float) -> Any:
    """ONNX ``BatchNormalization`` for inference."""
    return functional.batch_norm(x, mean, variance, scale, offset, False, 0.0, epsilon)


def layer_norm(x: Any, gamma: Any, beta: Any, *, axis: int, epsilon: float) -> Any:
    """ONNX ``LayerNormalization`` from ``axis`` to the end."""
    return functional.layer_norm(x, x.shape[axis:], gamma, beta, epsilon)


def flatten(x: Any) -> Any:
    return torch.flatten(x, 1)


def dense(x: Any, weight: Any, bias: Any, *, transB: int) -> Any:  # the ONNX attribute's name
    """ONNX ``Gemm`` with ``transB = 1``."""
    return functional.linear(x, weight if transB else weight.T, bias)


def global_average_pool(x: Any) -> Any:
    return functional.adaptive_avg_pool2d(x, 1)


def max_pool(x: Any, *, kernel_shape: Sequence[int], strides: Sequence[int]) -> Any:
    return functional.max_pool2d(x, tuple(kernel_shape), tuple(strides))


def softmax(x: Any, *, axis: int = -1) -> Any:
    return torch.softmax(x, axis)


def transpose(x: Any, *, perm: Sequence[int]) -> Any:
    return x.permute(tuple(perm))


def reduction(function: Callable[..., Any]) -> Callable[..., Any]:
    """A ``Reduce...`` of ONNX, whose axes are an operand."""

    def reduce(x: Any, axes: Any, *, keepdims: int) -> Any:
        return function(x, tuple(axes.tolist()), bool(keepdims))

    return reduce


def arg_max(x: Any, *, axis: int, keepdims: int) -> Any:
    return torch.argmax(x, axis, bool(keepdims))


def concat(*operands: Any, axis: int) -> Any:
    return torch.cat(operands, axis)


def attention(queries: Any, keys: Any, values: Any, *, is_causal: int) -> Any:
    return functional.scaled_dot_product_attention(queries, keys, values, is_causal=bool(is_causal))


OPERATIONS: dict[str, Callable[..., Any]] = {
    "Abs": torch.abs,
    "Add": torch.add,
    "ArgMax": arg_max,
    "Attention": attention,
    "BatchNormalization": batch_norm,
    "Concat": concat,
    "Conv": conv,
    "Flatten": flatten,
    "Gelu": functional.gelu,
    "Gemm": dense,
    "GlobalAveragePool": global_average_pool,
    "LayerNormalization": layer_norm,
    "Log": torch.log,
    "MatMul": torch.matmul,
    "MaxPool": max_pool,
    "Mul": torch.mul,
    "Pow": torch.pow,
    "ReduceMax": reduction(torch.amax),
    "ReduceMean": reduction(torch.mean),
    "ReduceSum": reduction(torch.sum),
    "Relu": torch.relu,
    "Sigmoid": torch.sigmoid,
    "Sin": torch.sin,
    "Softmax": softmax,
    "Softplus": functional.softplus,
    "Tanh": torch.tanh,
    "Transpose": transpose,
}
"""ONNX operator -> a call with its operands in order and its attributes by name."""


def torch_module(graph: OnnxGraph, inputs: Sequence[str]) -> Any:
    """An ``nn.Module`` in evaluation mode: takes the inputs in order, gives the last node's result."""
    code = fx.Graph()
    values: dict[str, Any] = {name: code.placeholder(name) for name in inputs}
    root = {name: torch.nn.Parameter(torch.from_numpy(value.copy()), False) for name, value in graph.weights.items()}
    values.update({name: code.get_attr(name) for name in root})
    for node in graph.nodes:
        attributes = {item.name: onnx.helper.get_attribute_value(item) for item in node.attribute}
        operands = tuple(values[name] for name in node.input)
        values[node.output[0]] = code.call_function(OPERATIONS[node.op_type], operands, attributes)
    code.output(values[graph.nodes[-1].output[0]])
    return fx.GraphModule(root, code).eval()
