"""Reductions over axes, and what selects or accumulates along one."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from msc.dialects.arrays import Array, dtype_text
from msc.dialects.ms.base import MsOp
from msc.interp.registry import meaning
from msc.poly.compute import Combine, identity


def reduction_axes(op: MsOp, rank: int) -> tuple[int, ...]:
    """The axes that a reduction names, counted from the front; none named means all."""
    return tuple(axis % rank for axis in op.ints("axis")) or tuple(range(rank))


def _reduction(function: np.ufunc, combine: Combine, op: MsOp, x: Array) -> Array:
    """A reduction in the operand's own element type, so integers wrap; of nothing it is the neutral element."""
    neutral: Any = identity(combine, dtype_text(x.dtype))
    return function.reduce(
        x, axis=reduction_axes(op, x.ndim), keepdims=op.flag("keep_dims"), dtype=x.dtype, initial=neutral
    )


meaning("reduce_sum")(partial(_reduction, np.add, "add"))
meaning("reduce_prod")(partial(_reduction, np.multiply, "mul"))
meaning("reduce_max")(partial(_reduction, np.maximum, "max"))
meaning("reduce_min")(partial(_reduction, np.minimum, "min"))
meaning("reduce_all")(partial(_reduction, np.logical_and, "and"))
meaning("reduce_any")(partial(_reduction, np.logical_or, "or"))


@meaning("reduce_mean")
def _reduce_mean(op: MsOp, x: Array) -> Array:
    return mean(x, reduction_axes(op, x.ndim), keepdims=op.flag("keep_dims"))


def mean(x: Array, axes: tuple[int, ...], *, keepdims: bool) -> Array:
    """The sum by the number of elements; NaN of none."""
    total: Array = x.sum(axis=axes, keepdims=keepdims, dtype=x.dtype)
    return total / x.dtype.type(math.prod(x.shape[axis] for axis in axes))


def largest(x: Array, axes: tuple[int, ...]) -> Array:
    """The largest element over `axes`, which stay with size 1; the smallest possible value of none."""
    neutral: Any = identity("max", dtype_text(x.dtype))
    return np.maximum.reduce(x, axis=axes, keepdims=True, initial=neutral)


@meaning("argmax")
def _argmax(op: MsOp, x: Array) -> Array:
    return _arg(np.argmax, op, x)


@meaning("argmin")
def _argmin(op: MsOp, x: Array) -> Array:
    return _arg(np.argmin, op, x)


def _arg(function: Callable[..., Any], op: MsOp, x: Array) -> Array:
    """The first position of the extreme, or with `select_last` the last one."""
    axis, keep = op.int_("axis"), op.flag("keep_dims")
    if not op.flag("select_last"):
        return function(x, axis=axis, keepdims=keep)
    return x.shape[axis] - 1 - function(np.flip(x, axis), axis=axis, keepdims=keep)


@meaning("cumsum")
def _cumsum(op: MsOp, x: Array) -> Array:
    """Sums begin with 0, to which NumPy adds no first element: it would stay -0."""
    axis, reverse = op.int_("axis"), op.flag("reverse")
    ordered = np.flip(x, axis) if reverse else x
    total = np.cumsum(ordered, axis=axis, dtype=x.dtype) + np.zeros((), x.dtype)
    if op.flag("exclusive"):
        total = np.roll(total, 1, axis)
        total[tuple(slice(0, 1) if i == axis % x.ndim else slice(None) for i in range(x.ndim))] = 0
    return np.flip(total, axis) if reverse else total
