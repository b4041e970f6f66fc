"""MindSpore's `common.dtype`: element types, often imported as `mstype`."""

from __future__ import annotations

from typing import Any

import numpy as np

from msc.frontend.dtypes import (
    DType,
    DTypeLike,
    as_dtype,
    bfloat16,
    bool_,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)

half, float_, double = float16, float32, float64
byte, short, int_, long = int8, int16, int64, int64
ubyte, ushort, uint = uint8, uint16, uint64
Type = DType


def dtype_to_nptype(type_: DTypeLike) -> np.dtype[Any]:
    """NumPy's dtype of an element type."""
    return as_dtype(type_).numpy


def pytype_to_dtype(obj: DTypeLike) -> DType:
    """The element type of a Python or NumPy type."""
    return as_dtype(obj)


def dtype_to_pytype(type_: DTypeLike) -> type:
    """The Python type of an element type's numbers."""
    dtype = as_dtype(type_)
    return float if dtype.is_float else int if dtype.is_integer else bool


__all__ = [
    "DType", "Type", "bfloat16", "bool_", "byte", "double", "dtype_to_nptype", "dtype_to_pytype", "float16",
    "float32", "float64", "float_", "half", "int8", "int16", "int32", "int64", "int_", "long", "pytype_to_dtype",
    "short", "ubyte", "uint", "uint8", "uint16", "uint32", "uint64", "ushort",
]  # fmt: skip
