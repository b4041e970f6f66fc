"""Values of columns: NumPy arrays, of what users' functions give."""

# Values of user programs are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from msc.frontend.errors import ApiError, ApiTypeError
from msc.frontend.tensor import Tensor, concrete
from msc.support.argument_values import described
from msc.support.arrays import Array

Row: TypeAlias = tuple[Array, ...]


def as_array(value: Any, what: str) -> Array:
    """A value as an array. Raises MSC0872 for what is none."""
    if isinstance(value, np.ndarray):
        array: Array = value
    elif isinstance(value, Tensor):
        array = concrete(value, what)
    else:
        try:
            array = np.asarray(value)
        except ValueError:
            raise ApiTypeError("MSC0872", f"{what} is a list whose parts differ in length") from None
    if array.dtype.kind == "O":
        raise ApiTypeError(
            "MSC0872", f"{what} is {described(value)}; columns hold numbers, booleans, strings and arrays of them"
        )
    return array


def stacked(values: list[Array], column: str) -> Array:
    """The values of a column as one array with one more axis. Raises MSC0872 if they differ."""
    first = values[0]
    for number, value in enumerate(values):
        if value.shape != first.shape:
            raise unlike(column, f"shape {first.shape}", f"shape {value.shape}", number)
        if value.dtype != first.dtype and "U" not in (value.dtype.kind, first.dtype.kind):
            raise unlike(column, str(first.dtype), str(value.dtype), number)
    return np.stack(values)


def unlike(column: str, first: str, other: str, number: int) -> ApiError:
    """The error of a batch whose rows differ."""
    return ApiTypeError(
        "MSC0872",
        f"column '{column}' has {first} in the first row of a batch and {other} in row {number}",
        help="padded_batch pads to one shape; map or per_batch_map can bring rows to one shape",
    )
