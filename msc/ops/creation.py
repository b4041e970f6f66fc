"""Tensors made of sizes and numbers."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

import numpy as np

from msc.frontend import dtypes
from msc.frontend.dispatch import apply
from msc.frontend.dtypes import DType, DTypeLike, as_dtype, of_python
from msc.frontend.errors import ApiValueError
from msc.frontend.tensor import Number, Tensor, tensor_method
from msc.ops.operands import cast, flexible, only_tensor
from msc.ops.outside import on_arrays
from msc.ops.shapes import Sizes, sizes_of
from msc.support.arrays import Array

__all__ = [
    "arange", "empty", "eye", "fill", "from_numpy", "full", "full_like", "linspace", "logspace", "meshgrid",
    "new_ones", "new_zeros", "one_hot", "ones", "ones_like", "range", "tensor", "tril", "tril_indices", "triu",
    "triu_indices", "zeros", "zeros_like",
]  # fmt: skip


def tensor(input_data: Any = None, dtype: DTypeLike | None = None, shape: Any = None, init: Any = None) -> Tensor:
    """A tensor of data; see `Tensor`."""
    return Tensor(input_data, dtype, shape, init)


def from_numpy(array: object) -> Tensor:
    """A tensor that shares the memory of a NumPy array."""
    return Tensor.from_numpy(array)


def full(size: Sizes, fill_value: Number | Tensor, *, dtype: DTypeLike | None = None) -> Tensor:
    """A number everywhere; its element type is that of the number, Float32 for Python's floats."""
    if isinstance(fill_value, Tensor):
        value = fill_value if dtype is None else cast(fill_value, as_dtype(dtype))
        return apply("broadcast_to", apply("reshape", value, shape=()), shape=_sizes(size))
    wanted = of_python(np.asarray(fill_value).item()) if dtype is None else as_dtype(dtype)
    return Tensor.of(np.full(_sizes(size), np.array(fill_value).astype(wanted.numpy)))


def _sizes(size: Any) -> tuple[int, ...]:
    sizes = sizes_of(size)
    if any(n < 0 for n in sizes):
        raise ApiValueError("MSC0203", f"the shape {sizes} has negative sizes")
    return sizes


def ones(shape: Sizes, dtype: DTypeLike | None = None) -> Tensor:
    """1 everywhere; Float32 unless `dtype` says otherwise."""
    return full(shape, 1, dtype=dtype or dtypes.float32)


def zeros(size: Sizes, dtype: DTypeLike | None = None) -> Tensor:
    """0 everywhere; Float32 unless `dtype` says otherwise."""
    return full(size, 0, dtype=dtype or dtypes.float32)


def empty(*size: Any, dtype: DTypeLike | None = None) -> Tensor:
    """As `zeros`: nothing of the memory's past is shown."""
    return zeros(size[0] if len(size) == 1 else size, dtype)


def full_like(input: Tensor, fill_value: Number, *, dtype: DTypeLike | None = None) -> Tensor:
    """A number everywhere, in the shape and element type of a tensor."""
    x = only_tensor(input, "full_like")
    wanted = x.dtype if dtype is None else as_dtype(dtype)
    if -1 in x.shape:
        return apply("broadcast_to", _scalar(fill_value, wanted), shape=x.shape)
    return full(x.shape, fill_value, dtype=wanted)


def _scalar(value: Number, dtype: DType) -> Tensor:
    return Tensor.of(np.array(value).astype(dtype.numpy))


def ones_like(input: Tensor, *, dtype: DTypeLike | None = None) -> Tensor:
    """1 everywhere, in the shape and element type of a tensor."""
    return full_like(input, 1, dtype=dtype)


def zeros_like(input: Tensor, *, dtype: DTypeLike | None = None) -> Tensor:
    """0 everywhere, in the shape and element type of a tensor."""
    return full_like(input, 0, dtype=dtype)


@tensor_method("new_zeros")
def new_zeros(input: Tensor, size: Sizes, dtype: DTypeLike | None = None) -> Tensor:
    """0 everywhere in a shape, in the tensor's element type."""
    return zeros(size, dtype or input.dtype)


@tensor_method("new_ones")
def new_ones(input: Tensor, size: Sizes, dtype: DTypeLike | None = None) -> Tensor:
    """1 everywhere in a shape, in the tensor's element type."""
    return ones(size, dtype or input.dtype)


def fill(type: DTypeLike, shape: Sizes, value: Number) -> Tensor:
    """A number everywhere, of an element type."""
    return full(shape, value, dtype=type)


@tensor_method("fill")
def _filled(self: Tensor, value: Number) -> Tensor:
    return full_like(self, value)


def arange(start: Number = 0, end: Number | None = None, step: Number = 1, *, dtype: DTypeLike | None = None) -> Tensor:
    """Numbers from `start` up to but without `end`, `step` apart; Int64, or Float32 if one of them is a float."""
    first, last = (0, start) if end is None else (start, end)
    numbers = [v.item() if isinstance(v, Tensor) else v for v in (first, last, step)]
    if numbers[2] == 0:
        raise ApiValueError("MSC0203", "arange: step is 0")
    wanted = (
        as_dtype(dtype) if dtype else dtypes.float32 if any(isinstance(v, float) for v in numbers) else dtypes.int64
    )
    if any(isinstance(v, Tensor) and v.dtype.is_float for v in (first, last, step)):
        return on_arrays("arange", lambda *_: _numbers(numbers, wanted), first, last, step)
    return Tensor.of(_numbers(numbers, wanted))


def _numbers(ends: Sequence[Any], dtype: DType) -> Array:
    arange_: Any = np.arange
    return arange_(*ends).astype(dtype.numpy)


def range(start: Number, end: Number, step: Number, maxlen: int = 1000000) -> Tensor:
    """Numbers from `start` up to but without `end`, `step` apart; at most `maxlen`. Raises MSC0203."""
    found = arange(start, end, step)
    if found.size > maxlen:
        raise ApiValueError("MSC0203", f"range: there are {found.size} numbers, and maxlen is {maxlen}")
    return found


def _steps(function: str, steps: Any) -> int:
    (count,) = sizes_of(steps)
    if count < 0:
        raise ApiValueError("MSC0203", f"{function}: steps is {count}; it must be 0 or more")
    return count


def linspace(start: Number, end: Number, steps: int) -> Tensor:
    """So many numbers from `start` to `end`, both included, at equal distances; Float32."""
    return cast(numbers_between(start, end, np.linspace(0, 1, _steps("linspace", steps))), dtypes.float32)


def numbers_between(start: Number | Tensor, end: Number | Tensor, shares: Any) -> Tensor:
    """Numbers that lie at shares of the way from one to another, in Float64."""
    first, last = (cast(only_tensor(v, "linspace"), dtypes.float64) for v in (start, end))
    way = apply("mul", apply("sub", last, first), Tensor.of(np.asarray(shares, np.float64)))
    return apply("add", first, way)


def logspace(start: Number, end: Number, steps: int, base: int = 10, *, dtype: DTypeLike = dtypes.float32) -> Tensor:
    """Base to the numbers of `linspace`."""
    exponents = numbers_between(start, end, np.linspace(0, 1, _steps("logspace", steps)))
    return cast(apply("pow", Tensor(float(base), dtypes.float64), exponents), as_dtype(dtype))


def eye(n: int, m: int | None = None, dtype: DTypeLike = dtypes.float32) -> Tensor:
    """The identity matrix, with m columns."""
    return Tensor.of(np.eye(*_sizes((n, n if m is None else m)), dtype=as_dtype(dtype).numpy))


@flexible
def one_hot(
    indices: Tensor, depth: int, on_value: Number | Tensor = 1, off_value: Number | Tensor = 0, axis: int = -1
) -> Tensor:
    """Along a new axis of size `depth`, `on_value` at the index and `off_value` elsewhere."""
    on, off = (v if isinstance(v, Tensor) else None for v in (on_value, off_value))
    dtype = on.dtype if on is not None else of_python(on_value) if not isinstance(on_value, Tensor) else dtypes.int64
    x = only_tensor(indices, "one_hot")
    if on is None and off is None:
        return apply(
            "one_hot", x, depth=depth, axis=axis, on_value=float(on_value), off_value=float(off_value), dtype=dtype
        )
    chosen = apply("one_hot", x, depth=depth, axis=axis, dtype=dtypes.bool_)
    return apply("select", chosen, _as(on_value, dtype), _as(off_value, dtype))


def _as(value: Number | Tensor, dtype: DType) -> Tensor:
    return cast(value, dtype) if isinstance(value, Tensor) else _scalar(value, dtype)


def tril_indices(row: int, col: int, offset: int = 0, *, dtype: DTypeLike = dtypes.int64) -> Tensor:
    """The places of a lower triangle: rows and columns."""
    return Tensor.of(np.stack(np.tril_indices(row, offset, col)).astype(as_dtype(dtype).numpy))


def triu_indices(row: int, col: int, offset: int = 0, *, dtype: DTypeLike = dtypes.int64) -> Tensor:
    """The places of an upper triangle: rows and columns."""
    return Tensor.of(np.stack(np.triu_indices(row, offset, col)).astype(as_dtype(dtype).numpy))


def meshgrid(*inputs: Tensor, indexing: str = "xy") -> tuple[Tensor, ...]:
    """Vectors as the axes of a grid: the k-th result has the k-th coordinate of each of its points."""
    if indexing not in ("xy", "ij"):
        raise ApiValueError("MSC0203", f"meshgrid: indexing is {indexing!r}, not 'xy' or 'ij'")
    vectors: Sequence[Tensor] = inputs[0] if len(inputs) == 1 and isinstance(inputs[0], list | tuple) else inputs
    count = len(vectors)
    axes = list(builtins.range(count))
    if indexing == "xy" and count > 1:
        axes[0], axes[1] = 1, 0
    sizes = [0] * count
    for vector, axis in zip(vectors, axes, strict=True):
        sizes[axis] = vector.shape[0]
    grids: list[Tensor] = []
    for vector, axis in zip(vectors, axes, strict=True):
        line = apply("reshape", vector, shape=tuple(-1 if i == axis else 1 for i in builtins.range(count)))
        grids.append(apply("broadcast_to", line, shape=tuple(sizes)))
    return tuple(grids)


@tensor_method("tril")
def tril(input: Tensor, diagonal: int = 0) -> Tensor:
    """The lower triangle of the matrices in the last two axes; 0 above."""
    return apply("tril", only_tensor(input, "tril"), diagonal=diagonal)


@tensor_method("triu")
def triu(input: Tensor, diagonal: int = 0) -> Tensor:
    """The upper triangle of the matrices in the last two axes; 0 below."""
    return apply("triu", only_tensor(input, "triu"), diagonal=diagonal)
