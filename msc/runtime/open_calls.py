"""Calls whose inputs decide sizes: which sizes, and where tensors of less than the largest lie.

A tensor lies in memory as one of the largest sizes does. Arrays here are views of such memory, of the call's shape;
where at most the first dimension is open, that is an array like any other.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from msc.runtime.arguments import numpy_dtype
from msc.runtime.program import Signature, TensorSpec
from msc.support.arrays import Array
from msc.support.diagnostics import Diagnostic, MscError


def sizes_of(signature: Signature, arrays: Sequence[Array]) -> tuple[int, ...]:
    """The sizes that the shapes of inputs mean; the largest where no input has one of the rank it needs.

    Raises MSC0603 for a size out of its range, and for two inputs that disagree.
    """
    found: dict[int, tuple[int, str]] = {}
    for array, tensor in zip(arrays, signature.inputs, strict=True):
        if np.ndim(array) == len(tensor.shape):
            for axis, bound in enumerate(tensor.bounds):
                if bound is not None and bound.size is not None:
                    _note(found, signature, bound.size, int(np.shape(array)[axis]), f"input '{tensor.name}'", axis)
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


def valid_specs(tensors: Sequence[TensorSpec], sizes: Sequence[int]) -> list[TensorSpec]:
    """The tensors with the shapes that a call of these sizes takes or gives."""
    return [TensorSpec(t.name, t.c_name, t.dtype, t.valid_shape(sizes)) for t in tensors]


def placed(array: Array, tensor: TensorSpec) -> Array:
    """The array in memory as it has to lie: itself, or a copy."""
    if tensor.is_dense or array.shape == tensor.shape:
        return array
    memory = np.zeros(tensor.shape, array.dtype)
    view = memory[tuple(slice(n) for n in array.shape)]
    view[...] = array
    return view


def new_output(tensor: TensorSpec, sizes: Sequence[int]) -> Array:
    """Uninitialised memory for an output, of the shape that the call gives."""
    shape = tensor.valid_shape(sizes)
    if tensor.is_dense:
        return np.empty(shape, numpy_dtype(tensor.dtype))
    return np.empty(tensor.shape, numpy_dtype(tensor.dtype))[tuple(slice(n) for n in shape)]
