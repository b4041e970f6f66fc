"""Values of columns: NumPy arrays, of what users' functions give."""

# Values of user programs are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
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


class Ragged:
    """Values of several rows behind each other: texts, or rank 1 of any lengths.

    Texts are Python's strings: arrays of NumPy's would be as wide as the longest.
    """

    def __init__(self, items: list[str] | Array, lengths: Array | None = None) -> None:
        self.items, self.lengths = items, lengths
        """None where each row is one item, of rank 0."""

    @classmethod
    def joined(cls, rows: Sequence[Sequence[str]]) -> Ragged:
        """The words of rows."""
        return cls(list(chain.from_iterable(rows)), np.fromiter(map(len, rows), np.int64, len(rows)))

    def __len__(self) -> int:
        return len(self.items) if self.lengths is None else len(self.lengths)

    def __iter__(self) -> Iterator[Array]:
        if self.lengths is None:
            return map(np.asarray, self.items)
        ends = np.cumsum(self.lengths)
        return (
            _array(self.items[end - length : end])
            for end, length in zip(ends.tolist(), self.lengths.tolist(), strict=True)
        )

    @property
    def array(self) -> Array:
        """The items."""
        return _array(self.items)

    def with_items(self, items: list[str] | Array) -> Values:
        """Others in place of the items."""
        return items if self.lengths is None and isinstance(items, np.ndarray) else Ragged(items, self.lengths)

    @property
    def largest(self) -> int:
        """The length of the longest row."""
        return int(self._lengths.max())

    @property
    def _lengths(self) -> Array:
        assert self.lengths is not None
        return self.lengths

    def cut(self, most: int) -> Ragged:
        """The first items of each row."""
        if self.largest <= most:
            return self
        lengths = np.minimum(self._lengths, most)
        starts = np.repeat(np.cumsum(self._lengths) - self._lengths - (np.cumsum(lengths) - lengths), lengths)
        places = np.arange(len(starts)) + starts
        items = self.items
        return Ragged(items[places] if isinstance(items, np.ndarray) else [items[k] for k in places.tolist()], lengths)

    def padded(self, size: int, fill: Any) -> Array:
        """The rows [rows, size] with a fill behind them; what is longer is cut."""
        items = self.array
        made = room((len(self), size), fill, items.dtype)
        cut = self.cut(size)
        made[np.arange(size) < cut._lengths[:, None]] = items if cut is self else cut.items
        return made

    def stacked(self, column: str) -> Array:
        """The rows in one array. Raises MSC0872 if their lengths differ."""
        if self.lengths is None:
            return self.array
        if (self.lengths == self.lengths[0]).all():
            return self.array.reshape(len(self), -1)
        return stacked(list(self), column)


def _array(items: list[str] | Array) -> Array:
    return items if isinstance(items, np.ndarray) else np.asarray(items, np.str_)


Values: TypeAlias = "Array | list[Array] | Ragged"
"""The values of a column in a block: stacked, or a list if their shapes differ, or texts."""


Group: TypeAlias = tuple[Values, ...]
"""The columns of a block."""


def room(shape: Sequence[int], fill: Any, dtype: np.dtype[Any]) -> Array:
    """An array full of what values are padded with: 0 and empty strings unless something is said."""
    if dtype.kind != "U":
        return np.full(shape, fill or 0, dtype)
    text = fill if isinstance(fill, str) else ""
    return np.full(shape, text, np.result_type(dtype, np.asarray(text)))


def gathered(values: Sequence[Array]) -> Values:
    """The values of a column of some rows: stacked where they are alike."""
    if all(value.dtype.kind == "U" and not value.ndim for value in values):
        return Ragged([value.item() for value in values])
    return np.stack(values) if len({(value.shape, value.dtype) for value in values}) == 1 else list(values)


def stacked(values: Values, column: str) -> Array:
    """The values of a column as one array with one more axis. Raises MSC0872 if they differ."""
    if not isinstance(values, list):
        return values.stacked(column) if isinstance(values, Ragged) else values
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
