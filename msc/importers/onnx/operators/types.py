"""Conversions between element types."""

from __future__ import annotations

from onnx import TensorProto

from msc.importers.onnx.narrow import NARROW, decoded, encoded
from msc.importers.onnx.node import Node
from msc.importers.onnx.registry import importer
from msc.importers.onnx.tensors import dtype_of
from msc.importers.onnx.values import Value


@importer("Cast")
def _cast(node: Node) -> Value:
    return _converted(node, node.int_("to", 0))


def _converted(node: Node, target: int) -> Value:
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


@importer("CastLike")
def _cast_like(node: Node) -> Value:
    like = node[1]
    return node.cast(decoded(node, node[0]), like.dtype) if like.narrow is None else _converted(node, like.narrow)
