"""Making `ms.constant` operations from numbers and arrays, and reading them."""

from __future__ import annotations

from typing import cast

import numpy as np
from xdsl.dialects.builtin import AnyFloat, BytesAttr, DenseIntOrFPElementsAttr, IntegerType, TensorType
from xdsl.ir import OpResult, SSAValue

from msc.dialects.arrays import Array, dense_array, dtype_text, numpy_dtype
from msc.dialects.element_types import is_float
from msc.dialects.ms.shapes import tensor_type
from msc.dialects.ms.structure import ConstantOp
from msc.poly.compute import integer_range


def constant_of(array: Array) -> ConstantOp:
    """The constant with the elements, shape and element type of an array."""
    type_ = cast(TensorType[AnyFloat | IntegerType], tensor_type(dtype_text(array.dtype), array.shape))
    data = BytesAttr(np.ascontiguousarray(array).tobytes())
    return ConstantOp(value=DenseIntOrFPElementsAttr(type_, data))


def scalar_array(value: float, dtype: str) -> Array:
    """A number as an array of rank 0; integers take the nearest value that the element type has."""
    return np.array(representable(value, dtype), numpy_dtype(dtype))


def representable(value: float, dtype: str) -> float | int | bool:
    """A number as an element type has it: truncated and clamped for integers, as it is for floats."""
    if is_float(dtype):
        return float(value)
    if dtype == "i1":
        return bool(value)
    low, high = integer_range(dtype)
    return low if value <= low else high if value >= high else int(value)


def progression_of(array: Array) -> tuple[int, int, int] | None:
    """The axis, start and step of integers that rise or fall evenly along one axis, the only one; None for others."""
    axes = [axis for axis, size in enumerate(array.shape) if size > 1]
    if dtype_text(array.dtype) not in ("i32", "i64") or len(axes) != 1:
        return None
    flat = array.reshape(-1)
    start, step = int(flat[0]), int(flat[1]) - int(flat[0])
    return (axes[0], start, step) if np.array_equal(flat, start + step * np.arange(flat.size)) else None


def splat_of(value: SSAValue) -> object | None:
    """The one element (a NumPy scalar) that a constant has everywhere; None for other values."""
    if not isinstance(value, OpResult) or not isinstance(value.op, ConstantOp):
        return None
    array = dense_array(value.op.value)
    flat = array.reshape(-1)
    return flat[0] if flat.size and flat.tobytes() == flat[:1].tobytes() * flat.size else None
