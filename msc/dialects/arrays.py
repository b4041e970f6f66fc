"""Between element types of the IR and NumPy: dtypes, constants, and types that arrays are checked against."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from xdsl.dialects.builtin import DYNAMIC_INDEX, DenseIntOrFPElementsAttr, TensorType
from xdsl.ir import Attribute

from msc.dialects.element_types import dtype_name, is_integer
from msc.ir.errors import DtypeConflict
from msc.ir.typed import tensor_type
from msc.support.arrays import Array

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)

_SPECIAL = {"bf16": BFLOAT16, "i1": np.dtype(np.bool_), "index": np.dtype(np.int64)}


def numpy_dtype(name: str) -> np.dtype[Any]:
    """The NumPy dtype of an element type: "f32" is float32, "i1" bool, "bf16" that of ml_dtypes."""
    if name in _SPECIAL:
        return _SPECIAL[name]
    kind = "u" if name.startswith("ui") else name[0]
    return np.dtype(f"{kind}{int(name.lstrip('uif')) // 8}")


def element_dtype(element_type: Attribute) -> np.dtype[Any]:
    """The NumPy dtype of an element type attribute. Raises DtypeConflict for one that msc does not compute on."""
    name = dtype_name(element_type)
    if name is None:
        raise DtypeConflict(f"msc does not compute on element type {element_type}")
    return numpy_dtype(name)


def tensor_dtype(type_: TensorType[Attribute]) -> np.dtype[Any]:
    """The NumPy dtype of a tensor type's elements."""
    return element_dtype(type_.element_type)


def dtype_text(dtype: np.dtype[Any]) -> str:
    """The name that the IR gives a NumPy dtype: "f32" for float32; NumPy's own name for others."""
    for name in ("f16", "bf16", "f32", "f64", "i1", "i8", "i16", "i32", "i64", "ui8", "ui16", "ui32", "ui64"):
        if numpy_dtype(name) == dtype:
            return name
    return dtype.name


def type_text(array: Array) -> str:
    """An array's type as the IR writes it: `tensor<2x3xf32>`."""
    return f"tensor<{''.join(f'{n}x' for n in array.shape)}{dtype_text(array.dtype)}>"


def fits(array: Array, type_: TensorType[Attribute]) -> bool:
    """Whether an array has a tensor type's dtype and shape; unknown dimensions take any size."""
    return array.dtype == tensor_dtype(type_) and shape_fits(array, type_)


def shape_fits(array: Array, type_: TensorType[Attribute]) -> bool:
    """Whether an array has a tensor type's shape; unknown dimensions take any size."""
    shape = type_.get_shape()
    return array.ndim == len(shape) and all(n in (m, DYNAMIC_INDEX) for m, n in zip(array.shape, shape, strict=True))


def dense_array(value: DenseIntOrFPElementsAttr) -> Array:
    """The data of `dense<...>` as a read-only array that shares the attribute's bytes."""
    type_ = tensor_type(value.type)
    if dtype_name(type_.element_type) == "i1":
        flat = np.frombuffer(value.data.data, np.int8) != 0
    else:
        flat = np.frombuffer(value.data.data, tensor_dtype(type_))
    return flat.reshape(type_.get_shape())


def is_integer_array(array: Array) -> bool:
    """Whether an array holds integers proper (not booleans)."""
    return is_integer(dtype_text(array.dtype))
