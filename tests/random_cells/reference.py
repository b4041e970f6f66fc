"""Tensors and Cells in plain NumPy: what a generated program means, without any of msc."""

# Values of the programs under test are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false

from __future__ import annotations

from typing import Any

import numpy as np


class Array:
    """A reference to an array that is never written, as a tensor is: item assignment replaces what it refers to."""

    def __init__(self, value: Any) -> None:
        self.value = np.asarray(value)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.value.shape

    def sum(self) -> Array:
        return type(self)(self.value.sum(dtype=self.value.dtype))

    def max(self) -> Array:
        return type(self)(self.value.max())

    def reshape(self, *shape: int) -> Array:
        return type(self)(self.value.reshape(shape))

    def __getitem__(self, index: Any) -> Array:
        return type(self)(self.value[plain(index)])

    def __setitem__(self, index: Any, item: Any) -> None:
        changed = self.value.copy()
        changed[plain(index)] = plain(item)
        self.value = changed

    def __len__(self) -> int:
        return len(self.value)

    def __iter__(self) -> Any:
        return (type(self)(row) for row in self.value)

    def __bool__(self) -> bool:
        return bool(self.value)

    def __int__(self) -> int:
        return int(self.value)

    def __index__(self) -> int:
        return int(self.value)

    def __neg__(self) -> Array:
        return type(self)(-self.value)

    def __abs__(self) -> Array:
        return type(self)(abs(self.value))


def plain(value: Any) -> Any:
    """A value with arrays for references to arrays."""
    return value.value if isinstance(value, Array) else value


def _operator(name: str) -> Any:
    def compute(self: Array, other: Any) -> Array:
        return type(self)(getattr(self.value, name)(plain(other)))

    return compute


for _name in "add sub mul truediv floordiv mod radd rsub rmul lt le gt ge eq ne".split():
    setattr(Array, f"__{_name}__", _operator(f"__{_name}__"))


class Functions:
    """The functions that programs use, in place of `msc.ops`."""

    @staticmethod
    def maximum(a: Any, b: Any) -> Array:
        return Array(np.maximum(plain(a), plain(b)))

    @staticmethod
    def minimum(a: Any, b: Any) -> Array:
        return Array(np.minimum(plain(a), plain(b)))

    @staticmethod
    def abs(a: Any) -> Array:
        return Array(np.abs(plain(a)))

    @staticmethod
    def relu(a: Any) -> Array:
        return Array(np.maximum(plain(a), 0))


class Cell:
    """What `msc.nn.Cell` is to a program."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.construct(*args, **kwargs)  # pyright: ignore[reportAttributeAccessIssue]
