"""Scattering: each element of the result looks for the updates that are meant for it.

For every element of the result and every update along the axis there is one comparison, so that nothing is written to
a computed place: it is parallel, and the last of several updates of one place wins, as if they came in order.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from msc.dialects import ms
from msc.dialects.ms.base import MsOp
from msc.importers.onnx.node import Node
from msc.importers.onnx.operators.indexing import flat_places
from msc.importers.onnx.registry import importer
from msc.importers.onnx.values import Value
from msc.poly.compute import Combine, identity

_REDUCTIONS: Mapping[str, tuple[type[MsOp], type[MsOp], Combine]] = {
    "add": (ms.ReduceSumOp, ms.AddOp, "add"),
    "mul": (ms.ReduceProdOp, ms.MulOp, "mul"),
    "max": (ms.ReduceMaxOp, ms.MaximumOp, "max"),
    "min": (ms.ReduceMinOp, ms.MinimumOp, "min"),
}
_WORDS = ("none", *_REDUCTIONS)


def _hits(node: Node, places: Value, size: int, axis: int) -> Value:
    """Whether an update (axis `axis`, the updates' own) is meant for a place (a new axis before it)."""
    wide = node.cast(places, "i64")
    zero = node.scalar(0, "i64")
    counted = node(ms.SelectOp, node(ms.LessOp, wide, zero), node(ms.AddOp, wide, size), wide)
    rows = node(ms.ExpandDimsOp, counted, axis=[axis])
    wanted = node.arange(size).reshape([-1 if a == axis else 1 for a in range(rows.rank)])
    return node(ms.EqualOp, rows, node.constant(wanted))


def last_writer(node: Node, places: Value, size: int, axis: int) -> tuple[Value, Value]:
    """For each of `size` places along `axis`: the last update meant for it (0 if none), and whether there is one."""
    hits = _hits(node, places, size, axis)
    count = places.shape[axis]
    number = node.constant(node.arange(count).reshape([-1 if a == axis + 1 else 1 for a in range(hits.rank)]))
    last = node(ms.ReduceMaxOp, node(ms.SelectOp, hits, number, node.scalar(-1, "i64")), axis=[axis + 1])
    return node(ms.MaximumOp, last, 0), node(ms.GreaterEqualOp, last, 0)


@importer("ScatterElements", "Scatter")
def _scatter_elements(node: Node) -> Value:
    data, indices, updates = node[0], node[1], node[2]
    axis, word = node.axis(node.int_("axis", 0), data.rank), node.choice("reduction", "none", _WORDS)
    shape, given = node.shape_of(data), node.shape_of(indices)
    if 0 in given:
        return data
    size = shape[axis]
    if word == "none":
        writer, written = last_writer(node, indices, size, axis)
        new = node(ms.GatherElementsOp, updates, writer, axis=axis)
        return node(ms.SelectOp, _grown(node, written, shape), _grown(node, new, shape), data)
    reduce, join, combine = _REDUCTIONS[word]
    rows = node(ms.ExpandDimsOp, updates, axis=[axis])
    neutral = node.scalar(identity(combine, data.dtype), data.dtype)
    chosen = node(ms.SelectOp, _hits(node, indices, size, axis), rows, neutral)
    total = node(reduce, chosen, axis=[axis + 1])
    return node(join, data, _grown(node, total, shape, float(identity(combine, data.dtype))))


def _grown(node: Node, x: Value, shape: tuple[int, ...], value: float = 0.0) -> Value:
    """Padded at the end to `shape`: the updates may cover less than the data."""
    after = [n - m for n, m in zip(shape, x.shape, strict=True)]
    return node(ms.PadOp, x, pad=[*(0 for _ in shape), *after], value=value) if any(after) else x


@importer("ScatterND")
def _scatter_nd(node: Node) -> Value:
    """Index tuples become places in the flattened leading axes."""
    data, indices, updates = node[0], node[1], node[2]
    word = node.choice("reduction", "none", _WORDS)
    shape, (*lead, depth) = node.shape_of(data), node.shape_of(indices)
    if depth > len(shape):
        raise node.failure("MSC0711", f"index tuples of {depth} do not fit data of rank {data.rank}")
    rows, width, count = math.prod(shape[:depth]), math.prod(shape[depth:]), math.prod(lead)
    if 0 in (rows, width, count):
        return data
    places = node.reshape(flat_places(node, indices, shape[:depth]), (count,))
    table, new = node.reshape(data, (rows, width)), node.reshape(updates, (count, width))
    return node.reshape(_scattered_rows(node, table, places, new, word), shape)


def _scattered_rows(node: Node, table: Value, places: Value, new: Value, word: str) -> Value:
    rows = table.shape[0]
    if word == "none":
        writer, written = last_writer(node, places, rows, 0)
        return node(ms.SelectOp, node.reshape(written, (rows, 1)), node(ms.GatherOp, new, writer), table)
    reduce, join, combine = _REDUCTIONS[word]
    hits = _hits(node, places, rows, 0)
    chosen = node(
        ms.SelectOp,
        node.reshape(hits, (*hits.shape, 1)),
        node.reshape(new, (1, *new.shape)),
        node.scalar(identity(combine, table.dtype), table.dtype),
    )
    return node(join, table, node(reduce, chosen, axis=[1]))


@importer("TensorScatter")
def _tensor_scatter(node: Node) -> Value:
    """A cache updated from a write index a batch on, round the end in mode "circular"."""
    cache, update, start = node[0], node[1], node.get(2)
    axis = node.axis(node.int_("axis", -2), cache.rank)
    size, count, batch = node.shape_of(cache)[axis], node.shape_of(update)[axis], cache.shape[0]
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
