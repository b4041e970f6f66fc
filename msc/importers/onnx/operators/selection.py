"""The largest elements in order."""

from __future__ import annotations

import numpy as np

from msc.dialects import ms
from msc.importers.onnx.node import Node
from msc.importers.onnx.registry import importer
from msc.importers.onnx.values import OnnxValue
from msc.poly.compute import identity

MINIMUM_CHUNK, MAXIMUM_CHUNK = 1 << 8, 1 << 13
"""Of a long axis: every pair of elements of a chunk is compared."""

MAXIMUM_SIZE = 1 << 14
"""Of an axis whose pairs are compared all, because `k` is too large for chunks."""


@importer("TopK")
def _top_k(node: Node) -> list[OnnxValue]:
    """NaN counts as infinity; among equal elements the first comes first."""
    x = node[0]
    axis = node.axis(node.int_("axis", -1), x.rank)
    k = node.known_int(1, "k") if node.opset >= 10 else node.int_("k", 1)
    size = node.size_of(x, axis)
    if not 0 <= k <= size:
        raise node.failure("MSC0711", f"k is {k}, but axis {axis} has {size} elements")
    indices = _best(node, _without_nan(node, x), axis, k)
    return [node(ms.GatherElementsOp, x, indices, axis=axis), indices]


def _without_nan(node: Node, x: OnnxValue) -> OnnxValue:
    """The elements as they are compared."""
    if x.dtype[0] not in "fb":
        return x
    return node(ms.SelectOp, node(ms.IsNanOp, x), node.scalar(float("inf"), x.dtype), x)


def _best(node: Node, x: OnnxValue, axis: int, k: int) -> OnnxValue:
    """Where the k first elements of an axis are, in order.

    A long axis is cut into chunks; the first k of each meet again, so that the work is linear in the axis.
    """
    size = x.shape[axis]
    if k == 0:
        return node.constant(np.zeros([0 if a == axis else n for a, n in enumerate(x.shape)], np.int64))
    chunk = min(max(4 * k, MINIMUM_CHUNK), MAXIMUM_CHUNK)
    chunks_help = 2 * k <= chunk
    if size <= chunk or (size <= MAXIMUM_SIZE and not chunks_help):
        return _ranked(node, x, axis, k)
    if not chunks_help:
        raise node.failure("MSC0714", f"k is {k} of {size} elements; of so many msc sorts {MAXIMUM_CHUNK // 2} at most")
    parts = -(-size // chunk)
    long = _lengthened(node, x, axis, parts * chunk)
    before, after = x.shape[:axis], x.shape[axis + 1 :]
    inside = _ranked(node, node.reshape(long, (*before, parts, chunk, *after)), axis + 1, k)
    start = node.arange(parts).reshape([-1 if a == axis else 1 for a in range(x.rank + 1)]) * chunk
    places = node.reshape(node(ms.AddOp, inside, node.constant(start)), (*before, parts * k, *after))
    finalists = node(ms.GatherElementsOp, long, places, axis=axis)
    return node(ms.GatherElementsOp, places, _best(node, finalists, axis, k), axis=axis)


def _lengthened(node: Node, x: OnnxValue, axis: int, size: int) -> OnnxValue:
    """The axis with elements at its end that come after all others."""
    if x.shape[axis] == size:
        return x
    last = node.scalar(identity("max" if node.flag("largest", True) else "min", x.dtype), x.dtype)
    shape = [size - n if a == axis else n for a, n in enumerate(x.shape)]
    return node(ms.ConcatOp, x, node(ms.BroadcastToOp, last, shape=shape), axis=axis)


def _ranked(node: Node, x: OnnxValue, axis: int, k: int) -> OnnxValue:
    """As `_best`, by rank: an element's place is the number of those that come before it.

    Every pair along the axis is compared, so that nothing is sorted and nothing branches.
    """
    size = x.shape[axis]
    rank = _ranks(node, x, axis, size)
    place = node.arange(k).reshape([-1 if a == axis else 1 for a in range(x.rank + 1)])
    hits = node(ms.EqualOp, node(ms.ExpandDimsOp, rank, axis=[axis]), node.constant(place))
    number = node.arange(size).reshape([-1 if a == axis + 1 else 1 for a in range(x.rank + 1)])
    chosen = node(ms.SelectOp, hits, node.constant(number), node.scalar(0, "i64"))
    return node(ms.ReduceSumOp, chosen, axis=[axis + 1])


def _ranks(node: Node, x: OnnxValue, axis: int, size: int) -> OnnxValue:
    """How many elements along `axis` come before each."""
    mine, other = node(ms.ExpandDimsOp, x, axis=[axis + 1]), node(ms.ExpandDimsOp, x, axis=[axis])
    better = node(ms.GreaterOp if node.flag("largest", True) else ms.LessOp, other, mine)
    earlier = node.arange(size)[None, :] < node.arange(size)[:, None]
    shape = [1] * axis + [size, size] + [1] * (x.rank - axis - 1)
    tie = node(ms.LogicalAndOp, node(ms.EqualOp, other, mine), node.constant(earlier.reshape(shape)))
    before = node(ms.LogicalOrOp, better, tie)
    return node(ms.ReduceSumOp, node.cast(before, "i64"), axis=[axis + 1])
