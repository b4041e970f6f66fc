"""Images in other sizes."""

from __future__ import annotations

import numpy as np

from msc.dialects import ms
from msc.dialects.arrays import Array
from msc.importers.tflite.integers import F32, is_quantised
from msc.importers.tflite.node import TfliteNode, TfliteValue
from msc.importers.tflite.registry import importer

_MOST = 1 << 20
"""Pixels along an axis."""


def _sizes(node: TfliteNode) -> tuple[tuple[int, int], tuple[int, int]]:
    """Old and new sizes. Raises MSC0711."""
    x, new = node[0], node.ints(1, "size")
    if x.rank != 4 or len(new) != 2 or not all(0 < n <= _MOST for n in new) or 0 in x.shape[1:3]:
        raise node.failure("MSC0711", f"a {x.type} is no image that gets the size {new}")
    return (x.shape[1], x.shape[2]), (new[0], new[1])


@importer("RESIZE_NEAREST_NEIGHBOR")
def _nearest(node: TfliteNode) -> TfliteValue:
    options = node.options("ResizeNearestNeighborOptions")
    corners, centres = bool(options.AlignCorners()), bool(options.HalfPixelCenters())
    y = node.first(node[0])
    for axis, (old, new) in enumerate(zip(*_sizes(node), strict=True)):
        scale = F32(old - 1) / F32(new - 1) if corners and new > 1 else F32(old) / F32(new)
        at = (np.arange(new).astype(F32) + F32(0.5 if centres else 0)) * scale
        places = np.floor(at + F32(0.5)) if corners else np.floor(at)
        y = node(ms.GatherOp, y, node.constant(np.clip(places, 0, old - 1).astype(np.int64)), axis=axis + 2)
    return node.last(y)


@importer("RESIZE_BILINEAR")
def _bilinear(node: TfliteNode) -> TfliteValue:
    options = node.options("ResizeBilinearOptions")
    corners, centres = bool(options.AlignCorners()), bool(options.HalfPixelCenters())
    if is_quantised(node[0]):
        return _bilinear_of_integers(node, corners, centres)
    y = node.first(node[0])
    for axis, (old, new) in enumerate(zip(*_sizes(node), strict=True)):
        scale = F32(old - 1) / F32(new - 1) if corners and new > 1 else F32(old) / F32(new)
        at = np.arange(new).astype(F32)
        at = (at + F32(0.5)) * scale - F32(0.5) if centres else at * scale
        low = np.maximum(np.floor(at), 0)
        high = np.minimum(low + 1, old - 1)
        low = np.minimum(low, old - 1)
        weight = np.clip(at - low, 0, 1).astype(F32)
        below, above = (node(ms.GatherOp, y, node.constant(p.astype(np.int64)), axis=axis + 2) for p in (low, high))
        share = node.constant(weight.reshape(-1, *(1 for _ in range(1 - axis))))
        y = node(ms.AddOp, below, node(ms.MulOp, node(ms.SubOp, above, below), share))
    return node.last(y)


def _bilinear_of_integers(node: TfliteNode, corners: bool, centres: bool) -> TfliteValue:
    """In fixed point of ten bits an axis; the sum of four is rounded once, ties away from zero."""
    y = node.cast(node.first(node[0]), "i32")
    for axis, (old, new) in enumerate(zip(*_sizes(node), strict=True)):
        low, high, weight = _places(old, new, corners, centres)
        below, above = (node(ms.GatherOp, y, node.constant(p), axis=axis + 2) for p in (low, high))
        shape = (-1, *(1 for _ in range(1 - axis)))
        share, rest = (node.constant(w.astype(np.int32).reshape(shape)) for w in (weight, 1024 - weight))
        y = node(ms.AddOp, node(ms.MulOp, below, rest), node(ms.MulOp, above, share))
    half = node(ms.SelectOp, node(ms.GreaterOp, y, 0), node.scalar(1 << 19, "i32"), node.scalar(-(1 << 19), "i32"))
    return node.last(node.cast(node(ms.DivOp, node(ms.AddOp, y, half), 1 << 20), node[0].dtype))


def _places(old: int, new: int, corners: bool, centres: bool) -> tuple[Array, Array, Array]:
    """For each new pixel the two old ones around it, and the second one's share of 1024."""
    scale = ((1 << 10) * old + new // 2) // new
    if corners and new > 1:
        scale = ((1 << 10) * (old - 1) + (new - 1) // 2) // (new - 1)
    at = np.arange(new, dtype=np.int64) * scale
    at = at + (scale >> 1) - (1 << 9) if centres else at
    low = np.maximum(np.sign(at) * (np.abs(at) >> 10), 0)
    high = np.minimum(np.sign(at + 1023) * (np.abs(at + 1023) >> 10), old - 1)
    low = np.minimum(low, old - 1)
    return low, np.maximum(high, 0), at - low * 1024
