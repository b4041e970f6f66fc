"""Diagonals of matrices and what is built from them."""

from __future__ import annotations

import numpy as np

from msc.frontend.dispatch import apply
from msc.frontend.dtypes import DTypeLike, as_dtype
from msc.frontend.errors import ApiValueError
from msc.frontend.tensor import Tensor, tensor_method
from msc.ops.operands import cast
from msc.ops.reductions import sum
from msc.ops.shapes import axis_of, movedim, reshape

__all__ = ["diag", "diagonal", "trace"]


@tensor_method("diagonal")
def diagonal(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """The diagonal of the matrices in two axes, as a last axis; `offset` to the right of the main one."""
    a, b = axis_of(input, dim1, "diagonal"), axis_of(input, dim2, "diagonal")
    if a == b:
        raise ApiValueError("MSC0203", f"diagonal: dim1 and dim2 are both axis {a}")
    x = movedim(input, (a, b), (-2, -1))
    rows, columns = x.shape[-2:]
    first = max(-offset, 0)
    count = max(min(rows - first, columns - max(offset, 0)), 0)
    flat = reshape(x, (*x.shape[:-2], rows * columns))
    places = (np.arange(count) + first) * columns + np.arange(count) + max(offset, 0)
    return apply("gather", flat, Tensor.of(places), axis=flat.ndim - 1)


@tensor_method("diag")
def diag(input: Tensor, diagonal_offset: int = 0) -> Tensor:
    """A vector as the diagonal of a matrix of zeros; of a matrix, its diagonal."""
    if input.ndim == 2:
        return diagonal(input, diagonal_offset)
    if input.ndim != 1:
        raise ApiValueError("MSC0201", f"diag takes a vector or a matrix; this tensor has shape {input.shape}")
    (size,) = input.shape
    mask = Tensor.of(np.eye(size + abs(diagonal_offset), k=diagonal_offset, dtype=bool))
    before, after = max(diagonal_offset, 0), max(-diagonal_offset, 0)
    line = apply("pad", input, pad=(before, after))
    return apply("select", mask, line, Tensor(0, input.dtype))


@tensor_method("trace")
def trace(input: Tensor, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: DTypeLike | None = None) -> Tensor:
    """The sum of the diagonal of the matrices in two axes."""
    total = sum(diagonal(input, offset, axis1, axis2), -1)
    return cast(total, input.dtype if dtype is None else as_dtype(dtype))
