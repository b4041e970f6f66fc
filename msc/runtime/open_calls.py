"""Calls whose inputs decide sizes: which sizes, and where tensors of less than the largest lie.

A tensor lies in memory as one of the largest sizes does. Arrays here are views of such memory, of the call's shape;
where at most the first dimension is open, that is an array like any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, TypeAlias

import numpy as np

from msc.runtime.arguments import Checker, convertible, numpy_dtype
from msc.runtime.program import Signature, TensorSpec
from msc.support.arrays import Array
from msc.support.diagnostics import Diagnostic, MscError

KEPT = 256
"""Combinations of shapes of which a model keeps what it found out; training data of more lengths starts again."""

Shapes: TypeAlias = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class OpenCall:
    """All that the shapes of a call's inputs decide."""

    sizes: tuple[int, ...]
    memory: Array
    """The sizes as a call reads them."""
    addresses: tuple[int, ...]
    checker: Checker
    outputs: tuple[tuple[tuple[int, ...], np.dtype[Any], int], ...]
    """Shape, dtype and bytes of each output."""

    @staticmethod
    def of(signature: Signature, sizes: tuple[int, ...]) -> OpenCall:
        """A call of these sizes."""
        memory = np.array(sizes, np.int64)
        outputs = [(t.valid_shape(sizes), numpy_dtype(t.dtype)) for t in signature.outputs]
        return OpenCall(
            sizes,
            memory,
            tuple(memory.ctypes.data + k * memory.itemsize for k in range(len(sizes))),
            Checker([replace(t, shape=t.valid_shape(sizes), bounds=()) for t in signature.inputs]),
            tuple((shape, dtype, prod(shape) * dtype.itemsize) for shape, dtype in outputs),
        )


class OpenCalls:
    """The calls of a model by the shapes of their inputs."""

    def __init__(self, signature: Signature) -> None:
        self._signature = signature
        self._known: dict[Shapes, OpenCall] = {}

    def of(self, arrays: Sequence[object]) -> OpenCall:
        """What the shapes of the inputs decide. Raises MSC0603 and MSC0604."""
        key = tuple([x.shape if type(x) is np.ndarray else self._shape(x, k) for k, x in enumerate(arrays)])
        found = self._known.get(key)
        if found is None:
            found = OpenCall.of(self._signature, sizes_of(self._signature, key))
            if len(self._known) >= KEPT:
                self._known.clear()
            self._known[key] = found
        return found

    def _shape(self, value: object, number: int) -> tuple[int, ...]:
        return np.shape(convertible(value, self._signature.inputs[number].name))


def sizes_of(signature: Signature, shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The sizes that the shapes of inputs mean; the largest where no input has one of the rank it needs.

    Raises MSC0603 for a size out of its range, and for two inputs that disagree.
    """
    found: dict[int, tuple[int, str]] = {}
    for shape, tensor in zip(shapes, signature.inputs, strict=True):
        if len(shape) == len(tensor.shape):
            for axis, bound in enumerate(tensor.bounds):
                if bound is not None and bound.size is not None:
                    _note(found, signature, bound.size, shape[axis], f"input '{tensor.name}'", axis)
    return tuple(found[k][0] if k in found else size.high for k, size in enumerate(signature.sizes))


def _note(
    found: dict[int, tuple[int, str]], signature: Signature, number: int, value: int, tensor: str, axis: int
) -> None:
    size = signature.sizes[number]
    place = f"dimension {axis} ('{size.name}') of {tensor} is {value}"
    if not size.low <= value <= size.high:
        raise MscError(Diagnostic("MSC0603", f"{place}, expected {size.low} to {size.high}"))
    expected, where = found.setdefault(number, (value, tensor))
    if expected != value:
        raise MscError(Diagnostic("MSC0603", f"{place}, expected {expected}, as in {where}"))


def placed(array: Array, tensor: TensorSpec) -> Array:
    """The array in memory as it has to lie: itself, or a copy."""
    if tensor.is_dense or array.shape == tensor.shape:
        return array
    memory = np.zeros(tensor.shape, array.dtype)
    view = memory[tuple(slice(n) for n in array.shape)]
    view[...] = array
    return view


def new_output(tensor: TensorSpec, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Uninitialised memory for an output of this shape that does not lie like any array."""
    return np.empty(tensor.shape, dtype)[tuple(slice(n) for n in shape)]
