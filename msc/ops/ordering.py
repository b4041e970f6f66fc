"""Elements by their order: sorting, the largest ones, what accumulates along an axis."""

from __future__ import annotations

from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from msc.frontend import dtypes
from msc.frontend.dispatch import apply
from msc.frontend.errors import ApiValueError
from msc.frontend.tensor import Tensor, concrete, tensor_method
from msc.ops.arithmetic import mul
from msc.ops.comparison import equal, greater, less, logical_and, logical_or
from msc.ops.indexing import in_graph
from msc.ops.joining import narrow
from msc.ops.operands import cast as cast_to
from msc.ops.operands import flexible, only_tensor, pair
from msc.ops.reductions import argmax, sum
from msc.ops.shapes import axis_of, expand_dims, reshape, swapaxes

Array: TypeAlias = NDArray[Any]


@tensor_method("argsort")
@flexible
def argsort(input: Tensor, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The indices that sort along an axis; equal elements keep their order. Int64."""
    return sort(input, axis, descending)[1]


@flexible
def sort(input_x: Tensor, axis: int = -1, descending: bool = False, *, stable: bool = True) -> tuple[Tensor, Tensor]:
    """The elements in order along an axis, and where they stood (Int64); equal ones keep their order."""
    x = only_tensor(input_x, "sort")
    if x.ndim == 0:
        return x, Tensor(0)
    a = axis_of(x, axis, "sort")
    if not in_graph(x):
        array = concrete(x)
        places = _order(array, a, descending)
        return Tensor.of(np.take_along_axis(array, places, a)), Tensor.of(places)
    places = _ranked(x, a, descending)
    return apply("gather_elements", x, places, axis=a), places


def _order(array: Array, axis: int, descending: bool) -> Array:
    if not descending:
        return np.argsort(array, axis=axis, kind="stable")
    turned = np.flip(array, axis)
    return array.shape[axis] - 1 - np.flip(np.argsort(turned, axis=axis, kind="stable"), axis)


def _ranked(x: Tensor, axis: int, descending: bool) -> Tensor:
    """Each element's rank is how many stand before it; the order is where each rank stands."""
    last = swapaxes(x, axis, -1)
    size = last.shape[-1]
    mine, other = expand_dims(last, -1), expand_dims(last, -2)
    before = greater(other, mine) if descending else less(other, mine)
    earlier = Tensor.of(np.tri(size, k=-1, dtype=bool))
    rank = sum(cast_to(logical_or(before, logical_and(equal(other, mine), earlier)), dtypes.int32), -1)
    stands = equal(expand_dims(rank, -2), reshape(apply("iota", shape=(size,), dtype=dtypes.int64), (size, 1)))
    return swapaxes(argmax(cast_to(stands, dtypes.int32), -1), axis, -1)


@tensor_method("sort")
def _sort_method(self: Tensor, axis: int = -1, descending: bool = False) -> tuple[Tensor, Tensor]:
    return sort(self, axis, descending)


@tensor_method("topk", "top_k")
@flexible
def topk(
    input: Tensor, k: int, axis: int | None = None, largest: bool = True, sorted: bool = True
) -> tuple[Tensor, Tensor]:
    """The k largest elements along an axis, and where they stand (Int32); of equals the first ones."""
    x = only_tensor(input, "topk")
    a = axis_of(x, -1 if axis is None else axis, "topk")
    if not 0 < k <= x.shape[a]:
        raise ApiValueError("MSC0203", f"topk: k is {k}; axis {a} of {x.shape} has {x.shape[a]} elements")
    values, places = sort(x, a, largest)
    return narrow(values, a, 0, k), cast_to(narrow(places, a, 0, k), dtypes.int32)


def searchsorted(sorted_sequence: Tensor, values: Tensor, *, right: bool = False) -> Tensor:
    """How many elements of a sorted vector are less than each value, or not more if `right`."""
    line, v = only_tensor(sorted_sequence, "searchsorted"), expand_dims(only_tensor(values, "searchsorted"), -1)
    below = apply("less_equal" if right else "less", *pair("searchsorted", line, v))
    return sum(cast_to(below, dtypes.int64), -1)


def median(input: Tensor, axis: int = -1, keepdims: bool = False) -> tuple[Tensor, Tensor]:
    """The middle element along an axis, the lower one of two, and where it stands."""
    values, places = sort(input, axis)
    a = axis_of(input, axis, "median")
    middle = (input.shape[a] - 1) // 2
    found = narrow(values, a, middle, 1), narrow(places, a, middle, 1)
    return found if keepdims else cast(Any, tuple(apply("squeeze", v, axis=(a,)) for v in found))


@tensor_method("cumprod")
def cumprod(input: Tensor, dim: int) -> Tensor:
    """The products of the elements up to each one along an axis."""
    return _running(input, dim, "mul", "cumprod")


@flexible
def cummax(input: Tensor, axis: int) -> tuple[Tensor, Tensor]:
    """The largest element up to each one along an axis, and where it stands last."""
    return _running_extreme(input, axis, "maximum", "greater_equal")


@flexible
def cummin(x: Tensor, axis: int) -> tuple[Tensor, Tensor]:
    """The smallest element up to each one along an axis, and where it stands last."""
    return _running_extreme(x, axis, "minimum", "less_equal")


def _running(x: Tensor, axis: int, operation: str, function: str) -> Tensor:
    """Doubling steps: after each one an element joins twice as many before it."""
    a = axis_of(x, axis, function)
    size, step = x.shape[a], 1
    while step < size:
        joined = apply(operation, narrow(x, a, step, size - step), narrow(x, a, 0, size - step))
        x = apply("concat", narrow(x, a, 0, step), joined, axis=a)
        step *= 2
    return x


def _running_extreme(x: Tensor, axis: int, operation: str, comparison: str) -> tuple[Tensor, Tensor]:
    a = axis_of(x, axis, operation)
    values = _running(x, a, operation, operation)
    places = apply("iota", shape=x.shape, axis=a, dtype=dtypes.int64)
    marked = apply("select", apply(comparison, x, values), places, mul(places, 0))
    return values, _running(marked, a, "maximum", operation)
