"""Conversions between element types."""

from __future__ import annotations

from msc.importers.onnx.node import Node
from msc.importers.onnx.registry import importer
from msc.importers.onnx.tensors import dtype_of
from msc.importers.onnx.values import Value


@importer("Cast")
def _cast(node: Node) -> Value:
    return node.cast(node[0], dtype_of(node.int_("to", 0), node.label))


@importer("CastLike")
def _cast_like(node: Node) -> Value:
    return node.cast(node[0], node[1].dtype)
