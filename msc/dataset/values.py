"""Values of columns: NumPy arrays, of what users' functions give."""

# Values of user programs are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from msc.frontend.dtypes import as_dtype
from msc.frontend.errors import ApiError, ApiTypeError, ApiValueError
from msc.frontend.tensor import Tensor, concrete
from msc.support.argument_values import described
from msc.support.arrays import Array

Row: TypeAlias = tuple[Array, ...]


def as_array(value: Any, what: str) -> Array:
    """A value as an array, which may be the value's own. Raises MSC0872 for what is none."""
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


def own(value: Any, what: str) -> Array:
    """A value as an array that nothing else refers to. Raises MSC0872.

    What comes from a user's object is always copied: whether it is used again nobody can tell from it.
    """
    return np.array(as_array(value, what), order="C")


def own_row(row: Row) -> Row:
    """A row that may be part of something, as one that belongs to whoever takes it."""
    return tuple(np.array(value, order="C") for value in row)


def converted(array: Array, kind: np.dtype[Any], what: str) -> Array:
    """Values in the type that somebody says a column has. Raises MSC0884 if integers or booleans would be others."""
    made = cast_as_c(array, kind)
    if kind.kind in "iub" and not np.can_cast(array.dtype, kind) and not (made == array).all():
        other = array[made != array].reshape(-1)[0]
        raise ApiValueError(
            "MSC0884",
            f"{what} is {other}, and the column is said to be {as_dtype(kind)}, which has no such value",
            help="say a type that has it, or map the values to others",
        )
    return made


def cast_as_c(array: Array, kind: np.dtype[Any]) -> Array:
    """Values in another type, as C converts them on this machine: what is out of range wraps or saturates."""
    with np.errstate(invalid="ignore", over="ignore"):
        return array.astype(kind)


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
