"""The largest elements in order."""

from __future__ import annotations

from msc.dialects import ms
from msc.importers.onnx.node import Node
from msc.importers.onnx.registry import importer
from msc.importers.onnx.values import Value

MAXIMUM_SIZE = 1 << 14
"""Every pair of elements along the axis is compared."""


@importer("TopK")
def _top_k(node: Node) -> list[Value]:
    """By rank: an element's place is the number of elements that come before it, ties in order of index.

    Every pair along the axis is compared, so that nothing is sorted and nothing branches.
    """
    x = node[0]
    axis = node.axis(node.int_("axis", -1), x.rank)
    k = node.known_int(1, "k") if node.opset >= 10 else node.int_("k", 1)
    size = node.shape_of(x)[axis]
    if not 0 <= k <= size:
        raise node.failure("MSC0711", f"k is {k}, but axis {axis} has {size} elements")
    if size > MAXIMUM_SIZE:
        raise node.failure("MSC0714", f"axis {axis} has {size} elements; TopK takes {MAXIMUM_SIZE} at most")
    rank = _ranks(node, x, axis, size)
    place = node.arange(k).reshape([-1 if a == axis else 1 for a in range(x.rank + 1)])
    hits = node(ms.EqualOp, node(ms.ExpandDimsOp, rank, axis=[axis]), node.constant(place))
    number = node.arange(size).reshape([-1 if a == axis + 1 else 1 for a in range(x.rank + 1)])
    chosen = node(ms.SelectOp, hits, node.constant(number), node.scalar(0, "i64"))
    indices = node(ms.ReduceSumOp, chosen, axis=[axis + 1])
    return [node(ms.GatherElementsOp, x, indices, axis=axis), indices]


def _ranks(node: Node, x: Value, axis: int, size: int) -> Value:
    """How many elements along `axis` come before each."""
    mine, other = node(ms.ExpandDimsOp, x, axis=[axis + 1]), node(ms.ExpandDimsOp, x, axis=[axis])
    better = node(ms.GreaterOp if node.flag("largest", True) else ms.LessOp, other, mine)
    earlier = node.arange(size)[None, :] < node.arange(size)[:, None]
    shape = [1] * axis + [size, size] + [1] * (x.rank - axis - 1)
    tie = node(ms.LogicalAndOp, node(ms.EqualOp, other, mine), node.constant(earlier.reshape(shape)))
    before = node(ms.LogicalOrOp, better, tie)
    return node(ms.ReduceSumOp, node.cast(before, "i64"), axis=[axis + 1])
