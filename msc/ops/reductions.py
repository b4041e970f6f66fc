"""Sums, means, extremes and what else runs over axes. No axis means all of them."""

from __future__ import annotations

import builtins
import math
from collections.abc import Sequence
from typing import Any, TypeAlias

from msc.frontend import dtypes
from msc.frontend.dispatch import apply
from msc.frontend.dtypes import DTypeLike, as_dtype
from msc.frontend.errors import ApiTypeError, ApiValueError, NeedsValue
from msc.frontend.tensor import Tensor, tensor_method
from msc.ops.arithmetic import div, mul, sub
from msc.ops.arithmetic import pow as power
from msc.ops.comparison import not_equal
from msc.ops.operands import as_float, as_numbers, cast, flexible, only_tensor
from msc.ops.shapes import sizes_of
from msc.ops.unary import abs as absolute
from msc.ops.unary import exp, log

__all__ = [
    "all", "amax", "amin", "any", "argmax", "argmin", "count_nonzero", "cumsum", "logsumexp", "max",
    "max_with_index", "mean", "min", "min_with_index", "norm", "prod", "ptp", "std", "std_mean", "sum", "var",
    "var_mean",
]  # fmt: skip

Axes: TypeAlias = int | Sequence[int] | None


def axes_of(x: Tensor, axis: Axes, function: str) -> tuple[int, ...]:
    """Axes counted from the front; all of them for None or an empty sequence. Raises MSC0203."""
    given = () if axis is None else sizes_of(axis)
    for a in given:
        if not -builtins.max(x.ndim, 1) <= a < builtins.max(x.ndim, 1):
            raise ApiValueError("MSC0203", f"{function}: axis {a} is not an axis of a tensor of shape {x.shape}")
    return tuple(a % builtins.max(x.ndim, 1) for a in given) if given and x.ndim else tuple(builtins.range(x.ndim))


def _reduce(name: str, x: Tensor, axis: Axes, keepdims: bool, function: str, **properties: builtins.bool) -> Tensor:
    if x.ndim == 0:
        axes_of(x, axis, function)
        return x
    return apply(name, x, axis=axes_of(x, axis, function), keep_dims=builtins.bool(keepdims), **properties)


def _accumulated(x: Tensor, dtype: DTypeLike | None) -> Tensor:
    """Booleans and small integers are added up in Int64."""
    if dtype is not None:
        return cast(x, as_dtype(dtype))
    return cast(x, dtypes.int64) if not x.dtype.is_float else x


@tensor_method("sum")
@flexible
def sum(input: Tensor, dim: Axes = None, keepdim: bool = False, *, dtype: DTypeLike | None = None) -> Tensor:
    """The sum; of integers and booleans in Int64."""
    return _reduce("reduce_sum", _accumulated(only_tensor(input, "sum"), dtype), dim, keepdim, "sum")


@tensor_method("prod")
@flexible
def prod(input: Tensor, axis: Axes = None, keep_dims: bool = False, dtype: DTypeLike | None = None) -> Tensor:
    """The product; of integers and booleans in Int64."""
    return _reduce("reduce_prod", _accumulated(only_tensor(input, "prod"), dtype), axis, keep_dims, "prod")


@tensor_method("mean")
@flexible
def mean(input: Tensor, axis: Axes = None, keep_dims: bool = False, *, dtype: DTypeLike | None = None) -> Tensor:
    """The arithmetic mean, of integers in Float32."""
    x = only_tensor(input, "mean")
    return _reduce("reduce_mean", cast(x, as_dtype(dtype)) if dtype else as_float(x), axis, keep_dims, "mean")


@tensor_method("amax")
@flexible
def amax(input: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The largest element."""
    return _reduce("reduce_max", _comparable(input, "amax"), axis, keepdims, "amax")


@tensor_method("amin")
@flexible
def amin(input: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The smallest element."""
    return _reduce("reduce_min", _comparable(input, "amin"), axis, keepdims, "amin")


def _comparable(input: Tensor, function: str) -> Tensor:
    x = only_tensor(input, function)
    if 0 in x.shape:
        raise ApiValueError("MSC0201", f"{function}: a tensor of shape {x.shape} has no elements to choose from")
    return as_numbers(x)


def _first(name: str, input: Tensor, axis: int, keepdims: bool, function: str) -> Tensor:
    """The extremes whose places are returned too: their gradient belongs to these places."""
    return _reduce(name, _comparable(input, function), axis, keepdims, function, to_first=True)


@flexible
def max(input: Tensor, axis: int | None = None, keepdims: bool = False) -> tuple[Tensor, Tensor]:
    """The largest elements along an axis, and where they stand (Int64); without an axis the largest of all, and 0."""
    if axis is None:
        return amax(input), Tensor(0, dtypes.int64)
    return _first("reduce_max", input, axis, keepdims, "max"), argmax(input, axis, keepdims)


@flexible
def min(input: Tensor, axis: int | None = None, keepdims: bool = False) -> tuple[Tensor, Tensor]:
    """The smallest elements along an axis, and where they stand (Int64); without an axis the smallest of all, and 0."""
    if axis is None:
        return amin(input), Tensor(0, dtypes.int64)
    return _first("reduce_min", input, axis, keepdims, "min"), _place("argmin", input, axis, keepdims)


@tensor_method("max")
def _method_max(
    self: Tensor, dim: Axes = None, keepdim: bool = False, *,
    axis: Axes = None, keepdims: bool | None = None, return_indices: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:  # fmt: skip
    """The largest element. `x.max(axis=1)` gives those along an axis; `x.max(1)`, `x.max(dim=1)` also where they stand.

    So does `return_indices`. The places are Int64.
    """
    return _extreme(amax, max, (self, axis if dim is None else dim), (keepdim, keepdims), dim, return_indices)


@tensor_method("min")
def _method_min(
    self: Tensor, dim: Axes = None, keepdim: bool = False, *,
    axis: Axes = None, keepdims: bool | None = None, return_indices: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:  # fmt: skip
    """The smallest element, as the method `max` has it."""
    return _extreme(amin, min, (self, axis if dim is None else dim), (keepdim, keepdims), dim, return_indices)


def _extreme(
    one: Any, pair: Any, operands: tuple[Tensor, Axes], keeps: tuple[bool, bool | None], dim: Axes, asked: bool
) -> Any:
    """What a method gives: MindSpore has two. That of `dim, keepdim` gives pairs, that of `axis` elements."""
    keepdim, keepdims = keeps
    gives_pair = asked or (dim is not None and keepdims is None)
    function = pair if gives_pair and isinstance(operands[1], int) else one
    return function(*operands, keepdim if keepdims is None else keepdims)


def _place(name: str, input: Tensor, axis: int | None, keepdims: bool) -> Tensor:
    x = _comparable(input, name)
    if axis is None:
        flat = apply("reshape", x, shape=(-1,))
        place = apply(name, flat, axis=0, keep_dims=False)
        return apply("reshape", place, shape=(1,) * x.ndim) if keepdims else place
    if x.ndim == 0:
        return Tensor(0, dtypes.int64)
    return apply(name, x, axis=axis, keep_dims=builtins.bool(keepdims))


@tensor_method("argmax")
@flexible
def argmax(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """Where the largest element stands along an axis, or in the flattened tensor; Int64."""
    return _place("argmax", input, dim, keepdim)


@tensor_method("argmin")
@flexible
def argmin(input: Tensor, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Where the smallest element stands along an axis, or in the flattened tensor; Int32."""
    return cast(_place("argmin", input, axis, keepdims), dtypes.int32)


@tensor_method("argmax_with_value")
@flexible
def max_with_index(input: Tensor, axis: int = 0, keep_dims: bool = False) -> tuple[Tensor, Tensor]:
    """The largest elements along an axis, and where they stand."""
    return _first("reduce_max", input, axis, keep_dims, "max"), argmax(input, axis, keep_dims)


@tensor_method("argmin_with_value")
@flexible
def min_with_index(input: Tensor, axis: int = 0, keep_dims: bool = False) -> tuple[Tensor, Tensor]:
    """The smallest elements along an axis, and where they stand."""
    return _first("reduce_min", input, axis, keep_dims, "min"), _place("argmin", input, axis, keep_dims)


@tensor_method("all")
@flexible
def all(input: Tensor, axis: Axes = None, keep_dims: bool = False) -> Tensor:
    """Whether all elements are true."""
    return _reduce("reduce_all", cast(only_tensor(input, "all"), dtypes.bool_), axis, keep_dims, "all")


@tensor_method("any")
@flexible
def any(input: Tensor, axis: Axes = None, keep_dims: bool = False) -> Tensor:
    """Whether any element is true."""
    return _reduce("reduce_any", cast(only_tensor(input, "any"), dtypes.bool_), axis, keep_dims, "any")


def count(x: Tensor, axis: Axes, function: str) -> int:
    """How many elements are reduced to one. Raises NeedsValue if a size is not known."""
    sizes = [x.shape[a] for a in axes_of(x, axis, function)]
    if -1 in sizes:
        raise NeedsValue(f"{function} over an axis of unknown size")
    return math.prod(sizes)


def variance(input: Tensor, axis: Axes = None, ddof: float = 0, keepdims: bool = False) -> Tensor:
    """The mean square distance from the mean; the sum is divided by the number of elements less `ddof`."""
    x = as_float(only_tensor(input, "var"))
    distance = sub(x, _reduce("reduce_mean", x, axis, True, "var"))
    squares = _reduce("reduce_sum", apply("square", distance), axis, keepdims, "var")
    freedom = count(x, axis, "var") - ddof
    return div(squares, builtins.float(freedom)) if freedom > 0 else mul(squares, math.nan)


@tensor_method("var")
@flexible
def var(input: Tensor, axis: Axes = None, ddof: float = 0, keepdims: bool = False) -> Tensor:
    """The variance, with divisor N - `ddof`."""
    return variance(input, axis, ddof, keepdims)


@tensor_method("std")
@flexible
def std(input: Tensor, axis: Axes = None, ddof: float = 0, keepdims: bool = False) -> Tensor:
    """The standard deviation, with divisor N - `ddof`."""
    return length(variance(input, axis, ddof, keepdims))


@flexible
def var_mean(input: Tensor, axis: Axes = None, ddof: float = 0, keepdims: bool = False) -> tuple[Tensor, Tensor]:
    """Variance and mean."""
    return var(input, axis, ddof, keepdims), mean(input, axis, keepdims)


@flexible
def std_mean(input: Tensor, axis: Axes = None, ddof: float = 0, keepdims: bool = False) -> tuple[Tensor, Tensor]:
    """Standard deviation and mean."""
    return std(input, axis, ddof, keepdims), mean(input, axis, keepdims)


@tensor_method("cumsum")
@flexible
def cumsum(x: Tensor, axis: int, dtype: DTypeLike | None = None) -> Tensor:
    """The sums of the elements up to each one along an axis, in their element type; of booleans in Int64."""
    given = only_tensor(x, "cumsum")
    wanted = given.dtype if dtype is None and given.dtype is not dtypes.bool_ else dtype
    return apply("cumsum", _accumulated(given, wanted), axis=axis)


@tensor_method("logsumexp")
@flexible
def logsumexp(input: Tensor, axis: Axes = None, keep_dims: bool = False) -> Tensor:
    """Log of the sum of exp(x), without overflow."""
    x = as_float(only_tensor(input, "logsumexp"))
    largest = _reduce("reduce_max", x, axis, True, "logsumexp")
    safe = apply("select", apply("is_inf", largest), _zero(largest), largest)
    total = log(_reduce("reduce_sum", exp(sub(x, safe)), axis, True, "logsumexp"))
    result = apply("add", total, safe)
    return result if keep_dims or x.ndim == 0 else apply("squeeze", result, axis=axes_of(x, axis, "logsumexp"))


def _zero(like: Tensor) -> Tensor:
    return Tensor(0, like.dtype)


def length(squares: Tensor) -> Tensor:
    """The root of a sum of squares; where that is 0, its gradient is 0, a subgradient of the length."""
    return apply("sqrt", as_float(squares), flat=True)


def _to_power(x: Tensor, exponent: builtins.float) -> Tensor:
    return apply("pow", x, Tensor(exponent, x.dtype), flat=True) if exponent < 1 else power(x, exponent)


@tensor_method("norm")
@flexible
def norm(
    A: Tensor,
    ord: float | str | None = None,
    dim: Axes = None,
    keepdim: bool = False,
    *,
    dtype: DTypeLike | None = None,
) -> Tensor:
    """The norm of a vector: the root of the sum of squares, or that of order `ord`; "fro" is the former."""
    x = cast(A, as_dtype(dtype)) if dtype else as_float(only_tensor(A, "norm"))
    if ord is None or ord == "fro" or ord == 2:
        return length(_reduce("reduce_sum", apply("square", x), dim, keepdim, "norm"))
    size = absolute(x)
    if isinstance(ord, str):
        raise ApiTypeError("MSC0203", f"norm: ord {ord!r} is not a number or 'fro'")
    if math.isinf(ord):
        return _reduce("reduce_max" if ord > 0 else "reduce_min", size, dim, keepdim, "norm")
    if ord == 0:
        return cast(sum(not_equal(x, 0.0), dim, keepdim), x.dtype)
    powers = _to_power(size, builtins.float(ord))
    return _to_power(_reduce("reduce_sum", powers, dim, keepdim, "norm"), 1.0 / ord)


@tensor_method("count_nonzero")
@flexible
def count_nonzero(x: Tensor, axis: Axes = None, keep_dims: bool = False, dtype: DTypeLike = dtypes.int32) -> Tensor:
    """How many elements are not zero."""
    return cast(sum(not_equal(x, Tensor(0, x.dtype)), axis, keep_dims), as_dtype(dtype))


@tensor_method("ptp")
@flexible
def ptp(input: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The largest less the smallest element."""
    return sub(amax(input, axis, keepdims), amin(input, axis, keepdims))
