"""Conversions between element types."""

from __future__ import annotations

from dataclasses import replace

from onnx import TensorProto

from msc.dialects import ms
from msc.dialects.element_types import BYTES, element_type
from msc.importers.onnx.narrow import NARROW, decoded, encoded
from msc.importers.onnx.node import Node
from msc.importers.onnx.reading.tensors import dtype_of
from msc.importers.onnx.registry import importer
from msc.importers.onnx.values import OnnxValue


@importer("Cast")
def _cast(node: Node) -> OnnxValue:
    return _converted(node, node.int_("to", 0))


def _converted(node: Node, target: int) -> OnnxValue:
    x = node[0]
    if x.narrow == target:
        return x
    if target not in NARROW:
        return node.cast(decoded(node, x), dtype_of(target, node.label))
    saturate = node.flag("saturate", True)
    rounding = (
        node.choice("round_mode", "up", ("up", "down", "nearest")) if target == TensorProto.FLOAT8E8M0 else "nearest"
    )
    return encoded(node, decoded(node, x), NARROW[target], saturate=saturate, rounding=rounding)


@importer("BitCast")
def _bit_cast(node: Node) -> OnnxValue:
    """The bits of a type read as another of the same width; narrow types are their codes."""
    x, target = node[0], node.int_("to", 0)
    bits = NARROW[x.narrow].bits if x.narrow is not None else 8 * BYTES[x.dtype]
    dtype = "ui8" if target in NARROW else dtype_of(target, node.label)
    wanted = NARROW[target].bits if target in NARROW else 8 * BYTES[dtype]
    if bits != wanted:
        raise node.failure("MSC0711", f"it reads {bits} bits an element as {wanted}")
    y = x if x.dtype == dtype else node(ms.BitCastOp, x, dtype=element_type(dtype))
    return replace(y, narrow=target if target in NARROW else None)


@importer("CastLike")
def _cast_like(node: Node) -> OnnxValue:
    like = node[1]
    return node.cast(decoded(node, node[0]), like.dtype) if like.narrow is None else _converted(node, like.narrow)
