"""Arrays of what users give as data: numbers, nested sequences, NumPy arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeGuard

import numpy as np

from msc.frontend import dtypes
from msc.frontend.dtypes import DType, of_numpy
from msc.frontend.errors import ApiTypeError
from msc.support.arrays import Array
from msc.support.other_frameworks import is_tensor, to_array
from msc.support.wording import a


def array_of(data: object, dtype: DType | None = None) -> Array:
    """A new array of `data`: Python's floats as Float32, its ints as Int64, arrays in their own type or `dtype`.

    Raises MSC0803 for what is no rectangular array of numbers, MSC0801 for complex numbers and the like.
    """
    if is_array(data):
        return np.array(data, dtype=(dtype or of_numpy(data.dtype)).numpy, order="C")
    if is_tensor(data):
        return array_of(to_array(data), dtype)
    array = _parsed(data)
    if dtype is not None:
        return array.astype(dtype.numpy)
    if array.dtype == np.float64:
        return array.astype(dtypes.float32.numpy)
    return np.ascontiguousarray(array, of_numpy(array.dtype).numpy) if array.ndim else array


def is_array(data: object) -> TypeGuard[Array]:
    """Whether data are a NumPy array or a NumPy number."""
    return isinstance(data, np.ndarray | np.generic)


def _parsed(data: object) -> Array:
    if not isinstance(data, bool | int | float | Sequence) or isinstance(data, str | bytes):
        raise ApiTypeError(
            "MSC0803",
            f"a Tensor is made of numbers, nested lists of numbers or NumPy arrays, not of {a(type(data).__name__)}",
        )
    try:
        array: Array = np.array(data)
    except (ValueError, OverflowError) as error:
        raise ApiTypeError("MSC0803", f"these data make no tensor: {error}") from None
    if array.dtype == object:
        raise ApiTypeError("MSC0803", "these data make no tensor: not all are numbers that fit into 64 bits")
    return array
