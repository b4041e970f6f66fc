"""Matrix products. f32 accumulates in f32; integers accumulate in the result's element type."""

from __future__ import annotations

import numpy as np

from msc.dialects.arrays import Array, is_integer_array, tensor_dtype
from msc.dialects.ms.axis_transforms import TransformAxisOp
from msc.dialects.ms.base import MsOp
from msc.interp.registry import meaning


@meaning("matmul", "batch_matmul")
def _matmul(op: MsOp, a: Array, b: Array) -> Array:
    left = np.swapaxes(a, -1, -2) if op.flag("transpose_a") else a
    right = np.swapaxes(b, -1, -2) if op.flag("transpose_b") else b
    return product(op, left, right)


@meaning("dense")
def _dense(op: MsOp, x: Array, weight: Array, bias: Array | None = None) -> Array:
    """The weight is [out, in], as MindSpore's Dense and PyTorch's Linear store it."""
    y = product(op, x, weight.T)
    return y if bias is None else y + bias


@meaning("transform_axis")
def _transform_axis(op: MsOp, x: Array) -> Array:
    """Zeros of the matrix read nothing: they make no NaN of infinities."""
    assert isinstance(op, TransformAxisOp)
    vectors = np.moveaxis(x, op.int_("axis"), 0)
    rows = [[(i, x.dtype.type(factor)) for i, factor in enumerate(row) if factor] for row in op.rows()]
    zero = np.zeros(vectors.shape[1:], x.dtype)
    return np.stack([sum((vectors[i] * factor for i, factor in row), zero) for row in rows], op.int_("axis"))


def product(op: MsOp, a: Array, b: Array) -> Array:
    """The matrix product of two arrays; narrow integers widen to the result's element type first."""
    if is_integer_array(a):
        wide = tensor_dtype(op.result_tensor())
        return np.matmul(a.astype(wide), b.astype(wide))
    return np.matmul(a, b)
