"""MindSpore's `common.dtype`: element types, often imported as `mstype`."""

from __future__ import annotations

from enum import Enum
from typing import Any

import numpy as np

from msc.frontend.boundary import elsewhere
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

half, float_, single, double = float16, float32, float32, float64
byte, short, intc, intp, int_, long = int8, int16, int32, int64, int64, int64
ubyte, ushort, uint, uintc, uintp = uint8, uint16, uint64, uint32, uint64
Type = DType


class _NoTensorType:
    """A type of MindSpore's whose values no tensor of msc holds: it can be compared with, and no tensor is of it."""

    def __init__(self, label: str) -> None:
        self._label = label

    def __str__(self) -> str:
        return self._label

    def __repr__(self) -> str:
        return f"msc.{self._label.lower()}"


complex64, complex128 = _NoTensorType("Complex64"), _NoTensorType("Complex128")
cfloat, cdouble = complex64, complex128
float8_e4m3fn, float8_e5m2, hifloat8 = map(_NoTensorType, ("Float8_E4M3FN", "Float8_E5M2", "HiFloat8"))
qint4x2, string, type_none = map(_NoTensorType, ("QInt4x2", "String", "None_"))


class QuantDtype(Enum):
    """How many bits a number takes when a network is quantised."""

    INT1, INT2, INT3, INT4, INT5, INT6, INT7, INT8, INT9, INT10, INT11, INT12, INT13, INT14, INT15, INT16 = range(16)
    UINT1, UINT2, UINT3, UINT4, UINT5, UINT6, UINT7, UINT8 = range(100, 108)
    UINT9, UINT10, UINT11, UINT12, UINT13, UINT14, UINT15, UINT16 = range(108, 116)

    def __str__(self) -> str:
        return self.name


class Int(_NoTensorType):
    """The kind of all integers."""


class Float(_NoTensorType):
    """The kind of all floats."""


class Tuple(_NoTensorType):
    """The kind of tuples."""


class TensorType(_NoTensorType):
    """The kind of tensors of an element type."""

    def __init__(self, element: Any = None) -> None:
        super().__init__("Tensor" if element is None else f"Tensor[{element}]")
        self._element = element

    def element_type(self) -> Any:
        """The element type."""
        return self._element


number, list_, tuple_, tensor_type = _NoTensorType("Number"), _NoTensorType("List"), Tuple("Tuple"), TensorType()
number_type = (int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, float32, float64, bfloat16)


class np_dtype:
    """NumPy's dtypes of element types that NumPy lacks."""

    bfloat16 = bfloat16.numpy


def get_py_obj_dtype(obj: Any) -> Any:
    """The element type of a Python type or number, a tensor's own."""
    given: Any = obj if isinstance(obj, type) else getattr(obj, "dtype", obj.__class__)
    return as_dtype(given)


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


def __getattr__(name: str) -> Any:
    return elsewhere("msc.common.dtype", name, __all__)
