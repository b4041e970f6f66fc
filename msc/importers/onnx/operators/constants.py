"""Tensors that are made, not computed: constants, fills, ranges, windows; and random ones.

Which have no meaning here.
"""

from __future__ import annotations

import math

import numpy as np

from msc.dialects import ms
from msc.dialects.arrays import Array, numpy_dtype
from msc.dialects.element_types import element_type, is_float
from msc.importers.onnx.narrow import NARROW, known_codes
from msc.importers.onnx.node import Node
from msc.importers.onnx.reading.tensors import dtype_of
from msc.importers.onnx.registry import importer
from msc.importers.onnx.values import OnnxValue, Slot


@importer("Constant")
def _constant(node: Node) -> OnnxValue:
    if node.given("value"):
        array = node.tensor("value")
        assert array is not None
        narrow = next((t for t in NARROW.values() if t.dtype == array.dtype), None)
        return node.constant(array) if narrow is None else known_codes(array, narrow)
    for name, dtype, value in (
        ("value_float", np.float32, node.real("value_float", 0.0)),
        ("value_int", np.int64, node.int_("value_int", 0)),
        ("value_floats", np.float32, node.reals("value_floats")),
        ("value_ints", np.int64, node.ints("value_ints")),
    ):
        if node.given(name):
            return node.constant(np.array(value, dtype))
    raise node.failure("MSC0704", "the constant is of a kind that msc does not read (sparse, or strings)")


def filled(node: Node, value: Array, shape: list[int]) -> OnnxValue:
    """A tensor of one value; a large one is an operation, not data."""
    return node(ms.BroadcastToOp, node.constant(value.reshape(())), shape=shape)


@importer("ConstantOfShape")
def _constant_of_shape(node: Node) -> OnnxValue:
    value = node.tensor("value") if node.given("value") else np.zeros(1, np.float32)
    shape = node.known_ints(0, "shape")
    if any(n < 0 for n in shape) or math.prod(shape) > 1 << 40:
        raise node.failure("MSC0708", f"the shape {shape} has negative or absurd sizes")
    assert value is not None
    if value.size != 1:
        raise node.failure("MSC0711", "its value must have one element")
    return filled(node, value, shape)


@importer("Range")
def _range(node: Node) -> OnnxValue:
    start, limit, delta = (node.known(i, what).reshape(()) for i, what in enumerate(("start", "limit", "delta")))
    if delta == 0:
        raise node.failure("MSC0711", "its delta is 0")
    count = max(math.ceil((limit.item() - start.item()) / delta.item()), 0)
    dtype = node[0].dtype
    if count > 1 << 40:
        raise node.failure("MSC0708", f"the range has {count} elements")
    places = node(ms.IotaOp, shape=[count], dtype=element_type("i64" if not is_float(dtype) else dtype))
    steps = node(ms.MulOp, places, node.cast(node.constant(delta), places.dtype))
    return node.cast(node(ms.AddOp, steps, node.cast(node.constant(start), places.dtype)), dtype)


@importer("EyeLike")
def _eye_like(node: Node) -> OnnxValue:
    rows, columns = node.shape_of(node[0])
    dtype = dtype_of(node.int_("dtype", 0), node.label) if node.given("dtype") else node[0].dtype
    offset = node.int_("k", 0)
    row = node(ms.IotaOp, shape=[rows, columns], axis=0, dtype=element_type("i64"))
    column = node(ms.IotaOp, shape=[rows, columns], axis=1, dtype=element_type("i64"))
    return node.cast(node(ms.EqualOp, node(ms.AddOp, row, offset), column), dtype)


@importer("Identity")
def _identity(node: Node) -> Slot:
    return node.inputs[0] if node.inputs else None


@importer("Dropout")
def _dropout_attribute(node: Node) -> list[Slot]:
    return [node[0], _all_true(node)]


@importer("Dropout", since=12)
def _dropout(node: Node) -> list[Slot]:
    """Inference, or training that drops nothing; a random mask has no one meaning."""
    training = node.has(2) and bool(node.known(2, "training_mode"))
    ratio = float(node.known(1, "ratio")) if training and node.has(1) else 0.5 if training else 0.0
    if ratio != 0.0:
        raise node.failure("MSC0711", "training mode drops at random; msc compiles inference")
    return [node[0], _all_true(node)]


def _all_true(node: Node) -> OnnxValue | None:
    if not node.wants(1):
        return None
    dtype = "i1" if node.opset >= 10 else node[0].dtype
    return filled(node, np.ones(1, numpy_dtype(dtype)), list(node.shape_of(node[0])))
