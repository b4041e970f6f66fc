"""Elements of which data decide how many there are: as many places as can be, and how many of them are meant.

What a mask chooses comes first, in its order (`_chosen`); behind it lie other places of the same tensor, which are safe
to read and mean nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from msc.dialects import ms
from msc.importers.onnx.counted import counted
from msc.importers.onnx.node import Node
from msc.importers.onnx.operators.loops import Collected, Iteration, WrittenLoop
from msc.importers.onnx.operators.movement import cut
from msc.importers.onnx.registry import importer
from msc.importers.onnx.values import Count, OnnxValue


def _chosen(node: Node, flags: OnnxValue) -> tuple[OnnxValue, Count]:
    """The places along one axis where a mask holds, in order, and how many: i64."""
    numbers = node.cast(flags, "i32")
    order = node.cast(node(ms.ArgsortOp, numbers, axis=0, descending=True), "i64")
    total = node(ms.ReduceSumOp, node.cast(flags, "i64"), axis=[0])
    return order, Count(total, node.label)


def _taken(node: Node, x: OnnxValue, places: OnnxValue, axis: int = 0) -> OnnxValue:
    return node(ms.GatherOp, x, places, axis=axis)


@importer("NonZero")
def _non_zero(node: Node) -> OnnxValue:
    """The places of a tensor's elements that are not 0, one row an axis."""
    x = node[0]
    if x.array is not None or x.counts or not x.rank:
        return node.constant(np.array(np.nonzero(node.known(0, "value")), np.int64))
    shape = node.shape_of(x)
    flat = node.reshape(node.cast(x, "i1"), (math.prod(shape),))
    order, count = _chosen(node, flat)
    steps = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    rows = [node(ms.ModOp, node(ms.DivOp, order, step), n) for step, n in zip(steps, shape, strict=True)]
    return counted(node(ms.StackOp, *rows, axis=0), {1: count})


@importer("Compress")
def _compress(node: Node) -> OnnxValue:
    """The entries along an axis, or the elements, where a condition holds; it may be shorter than the axis."""
    x, condition = node[0], node[1]
    if not node.given("axis"):
        x = node.reshape(x, (math.prod(node.shape_of(x)),))
    axis = node.axis(node.int_("axis", 0), x.rank)
    if condition.array is not None or x.counts or condition.counts:
        return _taken(node, x, node.constant(np.flatnonzero(node.known(1, "condition")).astype(np.int64)), axis)
    flags = cut(node, condition, {0: (0, min(condition.shape[0], node.size_of(x, axis)), 1)})
    order, count = _chosen(node, flags)
    return counted(_taken(node, x, order, axis), {axis: count})


@importer("Unique")
def _unique(node: Node) -> list[OnnxValue]:
    """The elements that differ, where each stands first, which of them each element is, and how many are like it."""
    x = node[0]
    if x.array is not None or x.counts or node.given("axis"):
        return _known_unique(node)
    size = math.prod(node.shape_of(x))
    flat = node.reshape(x, (size,))
    order = node.cast(node(ms.ArgsortOp, flat, axis=0), "i64")
    ordered = _taken(node, flat, order)
    before = node.constant(np.maximum(node.arange(size) - 1, 0))
    differs = node(ms.NotEqualOp, ordered, _taken(node, ordered, before))
    is_new = node(ms.LogicalOrOp, differs, node.constant(node.arange(size) == 0))
    starts, count = _chosen(node, is_new)
    number = node(ms.SubOp, node(ms.CumsumOp, node.cast(is_new, "i64"), axis=0), 1)
    inverse = _taken(node, number, node.cast(node(ms.ArgsortOp, order, axis=0), "i64"))
    ends = _taken(node, starts, node.constant(np.minimum(node.arange(size) + 1, size - 1)))
    is_last = node(ms.GreaterEqualOp, node.constant(node.arange(size) + 1), count.value)
    times = node(ms.SubOp, node(ms.SelectOp, is_last, node.scalar(size, "i64"), ends), starts)
    first, found = _taken(node, order, starts), _taken(node, ordered, starts)
    if not node.flag("sorted", True):
        inside = node(ms.LessOp, node.constant(node.arange(size)), count.value)
        keys = node(ms.SelectOp, inside, first, node.scalar(size, "i64"))
        rank = node.cast(node(ms.ArgsortOp, keys, axis=0), "i64")
        found, first, times = (_taken(node, v, rank) for v in (found, first, times))
        inverse = _taken(node, node.cast(node(ms.ArgsortOp, rank, axis=0), "i64"), inverse)
    return [*(counted(v, {0: count}) for v in (found, first)), inverse, counted(times, {0: count})]


def _known_unique(node: Node) -> list[OnnxValue]:
    x = node.known(0, "value")
    axis = node.int_("axis", 0) if node.given("axis") else None
    found, first, inverse, counts = np.unique(x, return_index=True, return_inverse=True, return_counts=True, axis=axis)
    inverse = inverse.reshape(-1)
    if not node.flag("sorted", True):
        order = np.argsort(first)
        rank = np.argsort(order)
        found = np.take(found, order, axis=0 if axis is None else axis)
        first, inverse, counts = first[order], rank[inverse], counts[order]
    return [node.constant(found), *(node.constant(a.astype(np.int64)) for a in (first, inverse, counts))]


# Boxes.


@importer("NonMaxSuppression")
def _non_max_suppression(node: Node) -> OnnxValue:
    """Of each class of each batch the best box, the best of those that overlap it little enough, and so on.

    A loop takes one box of every class at a time, while there is one; what it took is then in the order of the result.
    """
    boxes, scores = node[0], node[1]
    if boxes.counts or scores.counts:
        raise node.failure("MSC0711", "it takes boxes of which data decide how many there are")
    batches, classes, count = node.shape_of(scores)
    most = node.known_int(2, "number of boxes of a class") if node.has(2) else 0
    most = max(min(most, count), 0)
    if not most or not batches * classes:
        return node.constant(np.zeros((0, 3), np.int64))
    places, valid = _suppressed(node, boxes, scores, most)
    order, chosen = _chosen(node, node.reshape(valid, (batches * classes * most,)))
    box = _taken(node, node.reshape(places, (batches * classes * most,)), order)
    batch = node(ms.DivOp, order, classes * most)
    class_ = node(ms.ModOp, node(ms.DivOp, order, most), classes)
    return counted(node(ms.StackOp, batch, class_, box, axis=1), {0: chosen})


def _suppressed(node: Node, boxes: OnnxValue, scores: OnnxValue, most: int) -> tuple[OnnxValue, OnnxValue]:
    """The boxes that are taken of each class of each batch, the best first, and which of these places hold one."""
    batches, classes, count = scores.shape
    nothing = node.scalar(-math.inf, scores.dtype)
    limit = _threshold(node, 3)
    if node.has(4):
        is_good = node(ms.GreaterOp, scores, _threshold(node, 4))
        scores = node(ms.SelectOp, is_good, scores, nothing)
    sides = _corners(node, boxes)
    numbers = node.constant(node.arange(count))
    rows = node.constant(node.arange(batches).reshape(-1, 1) * count)

    def best(left: OnnxValue) -> tuple[OnnxValue, OnnxValue]:
        place = node.cast(node(ms.ArgmaxOp, left, axis=2, keep_dims=True), "i64")
        is_there = node(ms.GreaterOp, node(ms.GatherElementsOp, left, place, axis=2), nothing)
        return node.reshape(place, (batches, classes)), node.reshape(is_there, (batches, classes))

    conditions: list[OnnxValue] = []

    def body(step: Iteration, state: Sequence[OnnxValue]) -> tuple[list[OnnxValue], list[Collected]]:
        left, place, is_there, taken, held = state
        flat = node(ms.AddOp, place, rows)
        own = [node.reshape(_taken(node, node.reshape(v, (-1,)), flat), (batches, classes, 1)) for v in sides]
        overlap = _overlaps(node, own, [node.reshape(v, (batches, 1, count)) for v in sides], limit)
        same = node(ms.EqualOp, numbers, node.reshape(place, (batches, classes, 1)))
        left = node(ms.SelectOp, node(ms.LogicalOrOp, overlap, same), nothing, left)
        after = best(left)
        conditions.append(node(ms.ReduceAnyOp, after[1], axis=[0, 1]))
        taken = node(ms.InsertSliceOp, taken, step.number(), place)
        return [left, *after, taken, node(ms.InsertSliceOp, held, step.number(), node.cast(is_there, "i64"))], []

    start = [node.constant(np.zeros((most, batches, classes), np.int64)) for _ in range(2)]
    before = best(scores)
    loop = WrittenLoop(node, [scores, *before, *start], body)
    first = node(ms.ReduceAnyOp, before[1], axis=[0, 1])
    ([*_, taken, held], _), _ = loop.repeat_while(first, conditions[0], node.constant(np.array(most, np.int64)))
    places, valid = (node(ms.TransposeOp, v, perm=[1, 2, 0]) for v in (taken, held))
    return places, node.cast(valid, "i1")


def _threshold(node: Node, index: int) -> OnnxValue:
    value = node.get(index)
    return node.scalar(0.0, node[1].dtype) if value is None else node.reshape(value, ())


def _corners(node: Node, boxes: OnnxValue) -> list[OnnxValue]:
    """The least and the greatest of both coordinates of each box: four tensors [batches, boxes]."""
    batches, count, _ = node.shape_of(boxes)
    a, b, c, d = (node.reshape(cut(node, boxes, {2: (k, k + 1, 1)}), (batches, count)) for k in range(4))
    if node.int_("center_point_box", 0):
        halves = [node(ms.MulOp, v, 0.5) for v in (c, d)]
        return [node(op, v, h) for op in (ms.SubOp, ms.AddOp) for v, h in zip((a, b), halves, strict=True)]
    return [node(op, v, w) for op in (ms.MinimumOp, ms.MaximumOp) for v, w in ((a, c), (b, d))]


def _overlaps(node: Node, one: Sequence[OnnxValue], other: Sequence[OnnxValue], limit: OnnxValue) -> OnnxValue:
    """Whether what two boxes share is more than `limit` of what they cover together; a box without area shares none."""
    low = [node(ms.MaximumOp, a, b) for a, b in zip(one[:2], other[:2], strict=True)]
    high = [node(ms.MinimumOp, a, b) for a, b in zip(one[2:], other[2:], strict=True)]
    sides = [node(ms.MaximumOp, node(ms.SubOp, b, a), 0.0) for a, b in zip(low, high, strict=True)]
    shared = node(ms.MulOp, *sides)
    areas = [node(ms.MulOp, node(ms.SubOp, box[2], box[0]), node(ms.SubOp, box[3], box[1])) for box in (one, other)]
    together = node(ms.SubOp, node(ms.AddOp, *areas), shared)
    found = node(ms.GreaterOp, node(ms.DivOp, shared, together), limit)
    return node(ms.LogicalAndOp, found, node(ms.GreaterOp, shared, 0.0))
