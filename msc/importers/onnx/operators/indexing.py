"""Elements chosen by indices."""

from __future__ import annotations

import math

import numpy as np

from msc.dialects import ms
from msc.importers.onnx.node import Node
from msc.importers.onnx.operators.movement import cut
from msc.importers.onnx.registry import importer
from msc.importers.onnx.values import OnnxValue


@importer("Gather")
def _gather(node: Node) -> OnnxValue:
    """One place that is known (the first token, say) is a slice: it fuses, and stays in dimensions of open size."""
    x, indices = node[0], node[1]
    axis = node.axis(node.int_("axis", 0), x.rank)
    check_places(node, indices, x.shape[axis])
    if x.array is not None or indices.array is None or indices.array.size != 1:
        return node(ms.GatherOp, x, indices, axis=axis)
    shape, place = node.shape_of(x), int(indices.array.reshape(-1)[0])
    place += shape[axis] if place < 0 else 0
    y = cut(node, x, {axis: (place, place + 1, 1)})
    return node.reshape(y, (*shape[:axis], *indices.shape, *shape[axis + 1 :]))


def check_places(node: Node, indices: OnnxValue, size: int) -> None:
    """Raise MSC0711 for a known index outside an axis of `size`, which may be unknown (-1)."""
    if indices.array is None or size < 0:
        return
    outside = indices.array[(indices.array < -size) | (indices.array >= size)].reshape(-1)
    if outside.size:
        raise node.failure("MSC0711", f"index {outside[0]} is outside an axis of {size} elements")


@importer("GatherElements")
def _gather_elements(node: Node) -> OnnxValue:
    axis = node.axis(node.int_("axis", 0), node[0].rank)
    check_places(node, node[1], node[0].shape[axis])
    return node(ms.GatherElementsOp, node[0], node[1], axis=axis)


@importer("GatherND")
def _gather_nd(node: Node) -> OnnxValue:
    """Index tuples become places in the flattened leading axes."""
    x, indices, batch = node[0], node[1], node.int_("batch_dims", 0)
    shape, (*lead, depth) = node.shape_of(x), node.shape_of(indices)
    if depth > len(shape) - batch:
        raise node.failure("MSC0711", f"index tuples of {depth} do not fit data of rank {x.rank}")
    batches, rows = math.prod(shape[:batch]), math.prod(shape[: batch + depth])
    places = flat_places(node, indices, shape[batch : batch + depth])
    count = math.prod(lead[batch:])
    places = node.reshape(places, (batches, count))
    if batches > 1:
        starts = node.arange(batches).reshape(-1, 1) * (rows // batches)
        places = node(ms.AddOp, places, node.constant(starts))
    table = node.reshape(x, (rows, math.prod(shape[batch + depth :])))
    y = node(ms.GatherOp, table, node.reshape(places, (batches * count,)), axis=0)
    return node.reshape(y, (*lead, *shape[batch + depth :]))


def flat_places(node: Node, indices: OnnxValue, sizes: tuple[int, ...]) -> OnnxValue:
    """Index tuples (the last axis) into axes of `sizes`, negative ones from the end, as flat places."""
    dims = node.constant(np.array(sizes, np.int64))
    wide = node.cast(indices, "i64")
    zero = node.scalar(0, "i64")
    counted = node(ms.SelectOp, node(ms.LessOp, wide, zero), node(ms.AddOp, wide, dims), wide)
    strides = np.array([math.prod(sizes[i + 1 :]) for i in range(len(sizes))], np.int64)
    return node(ms.ReduceSumOp, node(ms.MulOp, counted, node.constant(strides)), axis=[-1])


@importer("OneHot")
def _one_hot(node: Node) -> OnnxValue:
    """The two values may be computed; indices count from the end if negative."""
    indices, depth, values = node[0], node.known_int(1, "depth"), node[2]
    places = node.cast(indices, "i64")
    zero = node.scalar(0, "i64")
    counted = node(ms.SelectOp, node(ms.LessOp, places, zero), node(ms.AddOp, places, depth), places)
    hit = node(
        ms.OneHotOp, counted, depth=depth, axis=node.int_("axis", -1), dtype=node.scalar(False, "i1").type.element_type
    )
    off, on = (node(ms.GatherOp, values, node.constant(np.array(i))) for i in range(2))
    return node(ms.SelectOp, hit, on, off)


@importer("TopK")
def _top_k(node: Node) -> list[OnnxValue]:
    """NaN counts as infinity; among equal elements the first comes first."""
    x = node[0]
    axis = node.axis(node.int_("axis", -1), x.rank)
    k = node.known_int(1, "k") if node.opset >= 10 else node.int_("k", 1)
    size = node.size_of(x, axis)
    if not 0 <= k <= size:
        raise node.failure("MSC0711", f"k is {k}, but axis {axis} has {size} elements")
    places = node(ms.ArgsortOp, x, axis=axis, count=k, descending=node.flag("largest", True))
    return [node(ms.GatherElementsOp, x, places, axis=axis), places]
