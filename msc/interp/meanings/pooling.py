"""Pooling over windows of the spatial dimensions of NC... tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from msc.dialects.arrays import Array, dtype_text
from msc.dialects.ms.base import MsOp
from msc.interp.meanings.reductions import largest, mean
from msc.interp.meanings.windows import Pads, Windows, padded, windows_of
from msc.interp.registry import meaning
from msc.poly.compute import identity


@dataclass(frozen=True)
class _Plan:
    """The windows of a pooling operation on a tensor, its padding, and the padding that ceil mode adds at the end."""

    windows: Windows
    counts: tuple[int, ...]
    pads: Pads
    overhang: Pads


def _plan(op: MsOp, spatial: Sequence[int]) -> _Plan:
    windows = windows_of(op, op.ints("kernel_size"))
    pads = windows.pads(op, spatial)
    sizes = [n + before + after for n, (before, after) in zip(spatial, pads, strict=True)]
    counts = windows.counts(sizes)
    if op.flag("ceil_mode") and op.word("pad_mode") != "same":
        # A window that would start in the end padding is dropped (PyTorch, ONNX).
        starts = zip(windows.counts(sizes, ceil=True), windows.stride, spatial, pads, strict=True)
        counts = tuple(c - 1 if (c - 1) * s >= n + pad[0] else c for c, s, n, pad in starts)
    needs = zip(counts, windows.stride, windows.extents(), sizes, strict=True)
    return _Plan(windows, counts, pads, tuple((0, max((c - 1) * s + e - n, 0)) for c, s, e, n in needs))


def _pooled(plan: _Plan, x: Array, function: np.ufunc, neutral: float | bool) -> Array:
    image = padded(padded(x, plan.pads, neutral), plan.overhang, neutral)
    y = np.full((*x.shape[:2], *plan.counts), neutral, x.dtype)
    for _, view in plan.windows.offsets(image, plan.counts):
        function(y, view, out=y)
    return y


@meaning("max_pool1d", "max_pool2d", "max_pool3d")
def _max_pool(op: MsOp, x: Array) -> Array:
    return _pooled(_plan(op, x.shape[2:]), x, np.maximum, identity("max", dtype_text(x.dtype)))


@meaning("sum_pool1d", "sum_pool2d", "sum_pool3d")
def _sum_pool(op: MsOp, x: Array) -> Array:
    return _pooled(_plan(op, x.shape[2:]), x, np.add, 0)


@meaning("avg_pool1d", "avg_pool2d", "avg_pool3d")
def _avg_pool(op: MsOp, x: Array) -> Array:
    """The sum of a window by its number of elements: the tensor's, or with `count_include_pad` the padding's too."""
    plan = _plan(op, x.shape[2:])
    ones = np.ones((1, 1, *x.shape[2:]), x.dtype)
    if op.flag("count_include_pad"):
        ones = padded(ones, plan.pads, 1)
        unpadded = _Plan(plan.windows, plan.counts, ((0, 0),) * len(plan.pads), plan.overhang)
        return _pooled(plan, x, np.add, 0) / _pooled(unpadded, ones, np.add, 0)
    return _pooled(plan, x, np.add, 0) / _pooled(plan, ones, np.add, 0)


@meaning("global_avg_pool")
def _global_avg_pool(op: MsOp, x: Array) -> Array:
    return mean(x, tuple(range(2, x.ndim)), keepdims=True)


@meaning("global_max_pool")
def _global_max_pool(op: MsOp, x: Array) -> Array:
    return largest(x, tuple(range(2, x.ndim)))
