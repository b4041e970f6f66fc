"""Quantised values. Zero points are 0 if they are not given; all broadcast as in NumPy."""

from __future__ import annotations

import numpy as np

from msc.dialects.arrays import Array, numpy_dtype, tensor_dtype
from msc.dialects.ms.base import MsOp
from msc.dialects.ms.quantisation import real_type
from msc.interp.meanings.elementwise import converted
from msc.interp.registry import meaning
from msc.poly.compute import integer_range


@meaning("quantize")
def _quantize(op: MsOp, x: Array, scale: Array, zero: Array | None = None) -> Array:
    real = numpy_dtype(real_type(op.dtype(0), op.dtype(1)))
    return _rounded(op, x.astype(real) / scale.astype(real), zero)


@meaning("dequantize")
def _dequantize(op: MsOp, x: Array, scale: Array, zero: Array | None = None) -> Array:
    moved = x.astype(np.int32) if zero is None else x.astype(np.int32) - zero.astype(np.int32)
    dtype = numpy_dtype(real_type(op.dtype(1)))
    return moved.astype(dtype) * scale.astype(dtype)


@meaning("requantize")
def _requantize(op: MsOp, x: Array, scale: Array, zero: Array | None = None) -> Array:
    real = numpy_dtype(real_type(op.dtype(1)))
    return _rounded(op, x.astype(real) * scale.astype(real), zero)


def _rounded(op: MsOp, real: Array, zero: Array | None) -> Array:
    low, high = integer_range(op.result_dtype())
    moved = np.round(real).astype(np.float32)
    moved = moved if zero is None else moved + zero.astype(np.float32)
    return converted(np.clip(moved, low, high), tensor_dtype(op.result_tensor()))
