"""Shapes as values, and operators that change shapes only."""

from __future__ import annotations

import math

import numpy as np

from msc.dialects import ms
from msc.importers.onnx.counted import shape_with_counts
from msc.importers.onnx.node import Node
from msc.importers.onnx.registry import importer
from msc.importers.onnx.values import OnnxValue


@importer("Shape")
def _shape(node: Node) -> OnnxValue:
    shape = node.shape_of(node[0])
    start, end = node.int_("start", 0), node.int_("end", len(shape)) if node.given("end") else None
    part = range(len(shape))[start:end]
    if any(axis in node[0].counts for axis in part):
        return shape_with_counts(node, shape, node[0].counts, part)
    return node.constant(np.array(shape[start:end], np.int64))


@importer("Size")
def _size(node: Node) -> OnnxValue:
    rest = math.prod(n for axis, n in enumerate(node.shape_of(node[0])) if axis not in node[0].counts)
    size = node.constant(np.array(rest, np.int64))
    for count in node[0].counts.values():
        size = node(ms.MulOp, size, count.value)
    return size


@importer("Reshape")
def _reshape(node: Node) -> OnnxValue:
    wanted = node.known_ints(1, "shape") if len(node) > 1 else node.ints("shape")
    x = node[0]
    if not node.flag("allowzero"):
        if any(n == 0 and i >= x.rank for i, n in enumerate(wanted)):
            raise node.failure("MSC0711", f"shape {wanted} copies a size that {x.type} does not have")
        wanted = [x.shape[i] if n == 0 else n for i, n in enumerate(wanted)]
    return reshaped(node, x, wanted)


def reshaped(node: Node, x: OnnxValue, shape: list[int]) -> OnnxValue:
    """A reshape in which one size may be -1; also of a tensor without elements."""
    if -1 in shape and -1 not in x.shape and math.prod(x.shape) == 0:
        rest = math.prod(n for n in shape if n != -1)
        shape = [n if n != -1 else 0 if rest else 1 for n in shape]
    return node(ms.ReshapeOp, x, shape=shape)


@importer("Flatten")
def _flatten(node: Node) -> OnnxValue:
    x, axis = node[0], node.int_("axis", 1)
    if axis == x.rank or axis == 0 or x.rank == 0:
        shape = node.shape_of(x)
        return node.reshape(x, (1, math.prod(shape)) if axis == 0 else (math.prod(shape), 1))
    return node(ms.FlattenOp, x, axis=axis)


def _axes(node: Node, index: int = 1) -> list[int] | None:
    """The axes of an operator that took them as an attribute before it took them as an input."""
    if node.has(index):
        return node.known_ints(index, "axes")
    return node.ints("axes") if node.given("axes") else None


@importer("Squeeze")
def _squeeze(node: Node) -> OnnxValue:
    axes = _axes(node)
    if axes is None:
        return node(ms.SqueezeOp, node[0])
    return node(ms.SqueezeOp, node[0], axis=axes) if axes else node[0]


@importer("Unsqueeze")
def _unsqueeze(node: Node) -> OnnxValue:
    axes = _axes(node)
    if axes is None:
        raise node.failure("MSC0711", "its axes are missing")
    return node(ms.ExpandDimsOp, node[0], axis=axes) if axes else node[0]


@importer("Expand")
def _expand(node: Node) -> OnnxValue:
    """A size of 1 in the wanted shape keeps what the tensor has."""
    x, wanted = node[0], node.known_ints(1, "shape")
    own = (1,) * (len(wanted) - x.rank) + node.shape_of(x)
    wanted = [1] * (len(own) - len(wanted)) + wanted
    target = [n if m == 1 else m for n, m in zip(own, wanted, strict=True)]
    return node(ms.BroadcastToOp, x, shape=target) if tuple(target) != x.shape else x
