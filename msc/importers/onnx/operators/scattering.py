"""Scattering: a loop that writes one update after another in place, so that the last of several of one place wins."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from msc.dialects import ms
from msc.dialects.ms.base import MsOp
from msc.importers.onnx.node import Node
from msc.importers.onnx.operators.loops import Collected, Iteration, iterate
from msc.importers.onnx.operators.movement import cut
from msc.importers.onnx.registry import importer
from msc.importers.onnx.values import OnnxValue
from msc.ir.typed import tensor_type

_JOINS: Mapping[str, type[MsOp] | None] = {
    "none": None,
    "add": ms.AddOp,
    "mul": ms.MulOp,
    "max": ms.MaximumOp,
    "min": ms.MinimumOp,
}


def written(node: Node, table: OnnxValue, places: OnnxValue, new: OnnxValue) -> OnnxValue:
    """The entries of `new` put into those of a table at `places` (i64), joined as the node's `reduction` says."""
    join = _JOINS[node.choice("reduction", "none", tuple(_JOINS))]

    def body(step: Iteration, state: Sequence[OnnxValue]) -> tuple[list[OnnxValue], list[Collected]]:
        place, entry = step.entry(places), step.entry(new)
        if join is not None:
            entry = node(join, node(ms.ExtractSliceOp, state[0], place), entry)
        return [node(ms.InsertSliceOp, state[0], place, entry)], []

    (result,), _ = iterate(node, places.shape[0], [table], body)
    return result


@importer("ScatterElements", "Scatter")
def _scatter_elements(node: Node) -> OnnxValue:
    """Every element of the updates goes to its own place, with the index in that of the axis.

    Where the indices are the same along all of some trailing axes, whole rows go there: those of a graph network, which
    repeats the number of a node for each of its features.
    """
    data, indices, updates = node[0], node[1], node[2]
    axis = node.axis(node.int_("axis", 0), data.rank)
    shape, given = node.shape_of(data), node.shape_of(indices)
    if 0 in given:
        return data
    depth = max((a + 1 for a in range(data.rank) if not _is_whole(indices, a, axis, shape)), default=1)
    count, row = math.prod(given[:depth]), shape[depth:]
    places = _element_places(node, _leading(node, indices, depth), axis, shape[:depth])
    table = node.reshape(data, (math.prod(shape[:depth]), *row))
    new = node.reshape(updates, (count, *row))
    return node.reshape(written(node, table, node.reshape(places, (count,)), new), shape)


def _is_whole(indices: OnnxValue, axis: int, counted: int, shape: tuple[int, ...]) -> bool:
    """Whether all places along an axis, but for the `counted` one, get an update, all with the same index."""
    if axis == counted or indices.shape[axis] != shape[axis]:
        return False
    if indices.array is not None:
        return bool((indices.array == indices.array.take([0], axis)).all())
    return indices.shape[axis] == 1 or _repeated_shape(indices)[axis] == 1


def _repeated_shape(value: OnnxValue) -> tuple[int, ...]:
    """The shape of what is repeated to make a value, with as many axes."""
    repeated = _repeated(value)
    return (1,) * (value.rank - repeated.rank) + repeated.shape


def _repeated(value: OnnxValue) -> OnnxValue:
    """What is repeated along axes to make a value: it itself, if nothing is."""
    owner = None if value.ssa is None else value.ssa.owner
    if not isinstance(owner, ms.BroadcastToOp):
        return value
    return OnnxValue(tensor_type(owner.operands[0]), ssa=owner.operands[0], depends=value.depends)


def _leading(node: Node, indices: OnnxValue, depth: int) -> OnnxValue:
    """The indices along the first `depth` axes, where they are the same along all others."""
    if depth == indices.rank:
        return indices
    if indices.array is not None:
        return node.constant(indices.array[(..., *[0] * (indices.rank - depth))])
    kept = node.reshape(_repeated(indices), _repeated_shape(indices)[:depth])
    return kept if kept.shape == indices.shape[:depth] else node(ms.BroadcastToOp, kept, shape=indices.shape[:depth])


def _element_places(node: Node, indices: OnnxValue, axis: int, shape: tuple[int, ...]) -> OnnxValue:
    """Where in the flattened data each update goes."""
    wide = node.cast(indices, "i64")
    negative = node(ms.LessOp, wide, node.scalar(0, "i64"))
    counted = node(ms.SelectOp, negative, node(ms.AddOp, wide, shape[axis]), wide)
    place = node(ms.MulOp, counted, math.prod(shape[axis + 1 :]))
    for a, count in enumerate(indices.shape):
        if a != axis:
            along = node.arange(count).reshape([-1 if b == a else 1 for b in range(indices.rank)])
            place = node(ms.AddOp, place, node.constant(along * math.prod(shape[a + 1 :])))
    return place


@importer("ScatterND")
def _scatter_nd(node: Node) -> OnnxValue:
    """Index tuples become places in the flattened leading axes."""
    data, indices, updates = node[0], node[1], node[2]
    shape, (*lead, depth) = node.shape_of(data), node.shape_of(indices)
    if depth > len(shape):
        raise node.failure("MSC0711", f"index tuples of {depth} do not fit data of rank {data.rank}")
    rows, count = math.prod(shape[:depth]), math.prod(lead)
    if 0 in (rows, count):
        return data
    places = node.reshape(flat_places(node, indices, shape[:depth]), (count,))
    table = node.reshape(data, (rows, *shape[depth:]))
    return node.reshape(written(node, table, places, node.reshape(updates, (count, *shape[depth:]))), shape)


@importer("TensorScatter")
def _tensor_scatter(node: Node) -> OnnxValue:
    """A cache updated from a write index a batch on, round the end in mode "circular"."""
    cache, update, start = node[0], node[1], node.get(2)
    axis = node.axis(node.int_("axis", -2), cache.rank)
    size, count, batch = node.size_of(cache, axis), node.size_of(update, axis), cache.shape[0]
    node.check_table(batch)
    first = node.constant(np.zeros(batch, np.int64)) if start is None else node.cast(start, "i64")
    first = node.reshape(first, (batch, *(1 for _ in range(cache.rank - 1))))
    place = node.constant(node.arange(size).reshape([-1 if a == axis else 1 for a in range(cache.rank)]))
    number = node(ms.SubOp, place, first)
    if node.choice("mode", "linear", ("linear", "circular")) == "circular":
        number = node(ms.ModOp, number, size)
    written = node(ms.LogicalAndOp, node(ms.GreaterEqualOp, number, 0), node(ms.LessOp, number, count))
    chosen = node(ms.MinimumOp, node(ms.MaximumOp, number, 0), count - 1)
    new = node(ms.GatherElementsOp, update, node(ms.BroadcastToOp, chosen, shape=cache.shape), axis=axis)
    return node(ms.SelectOp, written, new, cache)


# Elements chosen by indices.
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
