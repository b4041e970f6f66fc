"""How a tensor is written, as MindSpore writes it: `Tensor(shape=[1], dtype=Float32, value= [ 5.00000000e+00])`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from msc.frontend.dtypes import DType


def representation(shape: Sequence[int], dtype: DType, array: NDArray[Any] | None) -> str:
    """The text of a tensor; without its elements if `array` is None."""
    head = f"Tensor(shape=[{', '.join(map(str, shape))}], dtype={dtype}"
    if array is None:
        return f"{head})"
    separator = "\n" if array.ndim > 1 else " "
    return f"{head}, value={separator}{_elements(array, dtype)})"


def _elements(array: NDArray[Any], dtype: DType) -> str:
    if array.ndim == 0:
        return f"{array.item():.6g}" if dtype.is_float else str(array.item())
    digits = 4 if dtype.itemsize == 2 else 8
    numbers = array.astype(np.float64) if dtype.is_float else array
    return np.array2string(numbers, separator=", ", formatter={"float_kind": lambda v: f"{v: .{digits}e}"})
