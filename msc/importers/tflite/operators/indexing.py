"""Elements by index, and what is known of shapes."""

from __future__ import annotations

import math

import numpy as np

from msc.dialects import ms
from msc.dialects.element_types import element_type
from msc.importers.tflite.model import schema
from msc.importers.tflite.node import TfliteNode, TfliteValue
from msc.importers.tflite.registry import importer

_MOST = 1 << 27
"""Elements of a table that is made at import."""


@importer("GATHER")
def _gather(node: TfliteNode) -> TfliteValue:
    x, indices, options = node[0], node[1], node.options("GatherOptions")
    if int(options.BatchDims()):
        raise node.failure("MSC0711", "it gathers by batches, which msc does not import")
    return node(ms.GatherOp, x, indices, axis=node.axis(int(options.Axis()), x.rank))


@importer("EMBEDDING_LOOKUP")
def _embedding(node: TfliteNode) -> TfliteValue:
    return node(ms.GatherOp, node[1], node[0], axis=0)


@importer("GATHER_ND")
def _gather_nd(node: TfliteNode) -> TfliteValue:
    """The last axis of the indices names a place in the first axes: one place of those axes as one."""
    x, indices = node[0], node[1]
    depth = indices.shape[-1] if indices.rank else 0
    if not 1 <= depth <= x.rank:
        raise node.failure("MSC0711", f"indices of a {indices.type} do not fit a {x.type}")
    sizes = x.shape[:depth]
    weights = np.array([math.prod(sizes[k + 1 :]) for k in range(depth)], np.int64)
    places = node(ms.ReduceSumOp, node(ms.MulOp, node.cast(indices, "i64"), node.constant(weights)), axis=[-1])
    return node(ms.GatherOp, node.reshape(x, (math.prod(sizes), *x.shape[depth:])), places, axis=0)


@importer("ARG_MAX", "ARG_MIN")
def _extreme(node: TfliteNode) -> TfliteValue:
    x, name = node[0], node.record.name
    axis = node.axis(node.int_(1, "axis"), x.rank)
    layout = node.layout(x)
    place = node(
        ms.ArgmaxOp if name == "ARG_MAX" else ms.ArgminOp, layout.take(x), axis=layout.axis(axis), keep_dims=True
    )
    whole = layout.give(place)
    options = node.options("ArgMaxOptions" if name == "ARG_MAX" else "ArgMinOptions")
    wide = int(options.OutputType()) == schema().TensorType.INT64
    shape = [n for a, n in enumerate(whole.shape) if a != axis]
    return node.cast(node.reshape(whole, shape), "i64" if wide else "i32")


@importer("ONE_HOT")
def _one_hot(node: TfliteNode) -> TfliteValue:
    indices, depth = node[0], node.int_(1, "depth")
    if not 0 <= depth <= _MOST:
        raise node.failure("MSC0708", f"its depth is {depth}")
    on, off = (float(node.known(k, what).reshape(-1)[0]) for k, what in ((2, "value"), (3, "other value")))
    axis = int(node.options("OneHotOptions").Axis())
    target = element_type(node[2].dtype)
    return node(ms.OneHotOp, indices, depth=depth, axis=axis, on_value=on, off_value=off, dtype=target)


@importer("SHAPE")
def _shape(node: TfliteNode) -> TfliteValue:
    wide = int(node.options("ShapeOptions").OutType()) == schema().TensorType.INT64
    return node.constant(np.array(node[0].shape, np.int64 if wide else np.int32))


@importer("RANK")
def _rank(node: TfliteNode) -> TfliteValue:
    return node.constant(np.array(node[0].rank, np.int32))


@importer("FILL")
def _fill(node: TfliteNode) -> TfliteValue:
    sizes = node.ints(0, "shape")
    if min(sizes, default=0) < 0:
        raise node.failure("MSC0708", f"its shape is {sizes}")
    return node(ms.BroadcastToOp, node.reshape(node[1], ()), shape=sizes)


@importer("RANGE")
def _range(node: TfliteNode) -> TfliteValue:
    start, limit, delta = (node.known(k, "bounds").reshape(-1)[0] for k in range(3))
    count = math.ceil((float(limit) - float(start)) / float(delta)) if delta else _MOST + 1
    if not 0 <= count <= _MOST:
        raise node.failure("MSC0708", f"from {start} to {limit} by {delta} there are too many numbers, or none")
    return node.constant(
        (start + delta * np.arange(count)).astype(node[0].array.dtype if node[0].array is not None else "i4")
    )


@importer("CUMSUM")
def _cumsum(node: TfliteNode) -> TfliteValue:
    options = node.options("CumsumOptions")
    axis = node.axis(node.int_(1, "axis"), node[0].rank)
    flags = {"exclusive": bool(options.Exclusive()), "reverse": bool(options.Reverse())}
    return node(ms.CumsumOp, node[0], axis=axis, **flags)
