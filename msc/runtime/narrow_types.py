"""Arrays of float8, float4, int4 and int2, and the codes (ui8) as which compiled models have them."""

from __future__ import annotations

from typing import Any

import numpy as np

from msc.support.arrays import Array


def narrow_dtype(name: str) -> np.dtype[Any]:
    """The dtype of a name of ml_dtypes, such as "float8_e4m3fn"."""
    import ml_dtypes

    return np.dtype(getattr(ml_dtypes, name))


def bits_of(dtype: np.dtype[Any]) -> int:
    """The bits of an element: the lowest ones of its code."""
    return int(dtype.name.lstrip("uint")) if "int" in dtype.name else 4 if "float4" in dtype.name else 8


def codes_of(array: Array, dtype: np.dtype[Any]) -> Array:
    """The codes of an array of a narrow type; an array of another type as it is."""
    if array.dtype != dtype:
        return array
    if "int" not in dtype.name:
        return np.ascontiguousarray(array).reshape(array.shape).view(np.uint8)
    return array.astype(np.int8).view(np.uint8) & np.uint8((1 << bits_of(dtype)) - 1)


def values_of(codes: Array, dtype: np.dtype[Any]) -> Array:
    """The array of a narrow type that has these codes."""
    if "int" not in dtype.name:
        return codes.view(dtype)
    bits = bits_of(dtype)
    sign = 0 if dtype.name.startswith("u") else 1 << (bits - 1)
    numbers = codes.astype(np.int16)
    return ((numbers ^ sign) - sign).astype(np.int8).astype(dtype)
