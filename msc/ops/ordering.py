"""Elements by their order: sorting, the largest ones, what accumulates along an axis."""

from __future__ import annotations

from typing import Any, cast

from msc.frontend import dtypes
from msc.frontend.dispatch import apply
from msc.frontend.errors import ApiValueError
from msc.frontend.tensor import Tensor, tensor_method
from msc.ops.arithmetic import mul
from msc.ops.joining import narrow
from msc.ops.operands import cast as cast_to
from msc.ops.operands import flexible, only_tensor, pair
from msc.ops.reductions import sum
from msc.ops.shapes import axis_of, expand_dims

__all__ = ["argsort", "cummax", "cummin", "cumprod", "median", "searchsorted", "sort", "topk"]


@tensor_method("argsort")
@flexible
def argsort(input: Tensor, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The indices that sort along an axis; equal elements keep their order. Int32."""
    return sort(input, axis, descending)[1]


@flexible
def sort(input_x: Tensor, axis: int = -1, descending: bool = False, *, stable: bool = True) -> tuple[Tensor, Tensor]:
    """The elements in order along an axis, and where they stood (Int32); equal ones keep their order."""
    x = only_tensor(input_x, "sort")
    if x.ndim == 0:
        return x, Tensor(0, dtypes.int32)
    a = axis_of(x, axis, "sort")
    places = apply("argsort", x, axis=a, descending=descending)
    return apply("gather_elements", x, places, axis=a), cast_to(places, dtypes.int32)


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
    places = apply("argsort", x, axis=a, count=k, descending=largest)
    return apply("gather_elements", x, places, axis=a), cast_to(places, dtypes.int32)


def searchsorted(sorted_sequence: Tensor, values: Tensor, *, right: bool = False) -> Tensor:
    """How many elements of a sorted vector are less than each value, or not more if `right`."""
    line, v = only_tensor(sorted_sequence, "searchsorted"), expand_dims(only_tensor(values, "searchsorted"), -1)
    below = apply("less_equal" if right else "less", *pair("searchsorted", line, v))
    return sum(cast_to(below, dtypes.int64), -1)


def median(input: Tensor, axis: int = -1, keepdims: bool = False) -> tuple[Tensor, Tensor]:
    """The middle element along an axis, the lower one of two, and where it stands."""
    values, order = sort(input, axis)
    a, places = axis_of(input, axis, "median"), cast_to(order, dtypes.int64)
    middle = (input.shape[a] - 1) // 2
    found = narrow(values, a, middle, 1), narrow(places, a, middle, 1)
    return found if keepdims else cast(Any, tuple(apply("squeeze", v, axis=(a,)) for v in found))


@tensor_method("cumprod")
def cumprod(input: Tensor, dim: int) -> Tensor:
    """The products of the elements up to each one along an axis."""
    return running(input, dim, "mul", "cumprod")


@flexible
def cummax(input: Tensor, axis: int) -> tuple[Tensor, Tensor]:
    """The largest element up to each one along an axis, and where it stands last."""
    return _running_extreme(input, axis, "maximum", "greater_equal")


@flexible
def cummin(x: Tensor, axis: int) -> tuple[Tensor, Tensor]:
    """The smallest element up to each one along an axis, and where it stands last (Int32)."""
    values, places = _running_extreme(x, axis, "minimum", "less_equal")
    return values, cast_to(places, dtypes.int32)


def running(x: Tensor, axis: int, operation: str, function: str, **properties: bool) -> Tensor:
    """Doubling steps: after each one an element joins twice as many before it."""
    a = axis_of(x, axis, function)
    size, step = x.shape[a], 1
    while step < size:
        joined = apply(operation, narrow(x, a, step, size - step), narrow(x, a, 0, size - step), **properties)
        x = apply("concat", narrow(x, a, 0, step), joined, axis=a)
        step *= 2
    return x


def _running_extreme(x: Tensor, axis: int, operation: str, comparison: str) -> tuple[Tensor, Tensor]:
    a = axis_of(x, axis, operation)
    values = running(x, a, operation, operation, to_first=True)
    places = apply("iota", shape=x.shape, axis=a, dtype=dtypes.int64)
    marked = apply("select", apply(comparison, x, values), places, mul(places, 0))
    return values, running(marked, a, "maximum", operation)
