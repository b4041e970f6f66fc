"""Inputs whose dimensions lie in another order in memory than people see them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from msc.runtime.arguments import Checker, convertible, numpy_dtype
from msc.runtime.program import TensorSpec
from msc.support.arrays import Array
from msc.support.diagnostics import Diagnostic


class StoredOrders:
    """Views of the inputs of calls in the order of memory; built once a model."""

    def __init__(self, tensors: Sequence[TensorSpec]) -> None:
        self._places = [(k, t, t.public_shape, t.public_order) for k, t in enumerate(tensors) if t.order]

    def stored(self, given: Sequence[Array]) -> Sequence[Array]:
        """The inputs in the order of memory. Raises MSC0603 and MSC0604 for those that are no such tensors."""
        if not self._places:
            return given
        found = list(given)
        for k, tensor, shape, _ in self._places:
            array = given[k]
            if type(array) is not np.ndarray or array.shape != shape:
                (array,) = Checker([_public(tensor)]).check((convertible(array, tensor.name),), {})
            found[k] = array.transpose(tensor.order)
        return found

    def seen(self, given: Sequence[Array], stored: Sequence[Array], checked: Sequence[Array]) -> Sequence[Array]:
        """The `checked` arrays of those that are `stored`, as people see them: what is `given` where none is a copy."""
        if not self._places:
            return checked
        found = list(checked)
        for k, _, _, order in self._places:
            found[k] = given[k] if checked[k] is stored[k] else checked[k].transpose(order)
        return found


def own_array(tensor: TensorSpec, value: Array) -> Array:
    """A new array that lies as a tensor does, as people see it. Raises MSC0603 and MSC0604."""
    (checked,) = Checker([_public(tensor)]).check((convertible(value, tensor.name),), {})
    if not tensor.order:
        return np.array(checked, order="C")
    return np.array(checked.transpose(tensor.order), order="C").transpose(tensor.public_order)


def lies_so(tensor: TensorSpec, array: Array) -> bool:
    """Whether an array of the tensor's shape and dtype lies as calls update it."""
    flags = (array.transpose(tensor.order) if tensor.order else array).flags
    return flags.c_contiguous and flags.writeable


def not_in_place(tensor: TensorSpec) -> Diagnostic:
    """What to say of an array that a call cannot update."""
    start = f"input '{tensor.name}' is updated in place: it must be a writable"
    if tensor.order:
        message = f"{start} NumPy array with its axes in the order {list(tensor.order)} in memory"
        return Diagnostic("MSC0614", message, help=f"pass model.state('{tensor.name}', value)")
    help_ = f"pass np.array(value, dtype='{numpy_dtype(tensor.dtype)}', order='C')"
    return Diagnostic("MSC0614", f"{start}, C-contiguous NumPy array", help=help_)


def _public(tensor: TensorSpec) -> TensorSpec:
    """The tensor as people see it."""
    return replace(tensor, shape=tensor.public_shape, order=())
