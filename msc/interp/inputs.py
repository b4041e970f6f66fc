"""Checking the inputs of an evaluation against what the entry function declares."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.dialects.builtin import DYNAMIC_INDEX, ArrayAttr, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, BlockArgument
from xdsl.utils.hints import isa

from msc.dialects.arrays import Array, dtype_text, element_dtype, numpy_dtype, type_text
from msc.dialects.ms.attributes import MS_DTYPE, MS_NAME
from msc.dialects.open_sizes import COUNTS
from msc.ir.storage_order import inverse, order_of
from msc.ir.typed import shaped_type
from msc.support.diagnostics import Diagnostic, MscError, did_you_mean


@dataclass(frozen=True)
class Declared:
    """What an argument takes: an array of `dtype` and `shape`, in which -1 is any size."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    order: tuple[int, ...] | None = None
    """The order in which the axes of the argument lie, if it is another one."""

    def inside(self, array: Array) -> Array:
        """The array as the function sees it."""
        return array if self.order is None else np.ascontiguousarray(array.transpose(self.order))

    def outside(self, array: Array) -> Array:
        """The function's array as the caller sees it."""
        return array if self.order is None else array.transpose(inverse(self.order))

    @property
    def type_text(self) -> str:
        """The type as the IR writes it."""
        return f"tensor<{''.join('?x' if n == -1 else f'{n}x' for n in self.shape)}{dtype_text(self.dtype)}>"

    def check(self, array: Array) -> None:
        """Raises MSC0603 for another shape, MSC0604 for another element type."""
        if len(self.shape) != array.ndim or any(n not in (-1, m) for n, m in zip(self.shape, array.shape, strict=True)):
            message = f"input '{self.name}' is a {self.type_text}, but the value given is a {type_text(array)}"
            raise MscError(Diagnostic("MSC0603", message))
        if array.dtype != self.dtype:
            wanted, given = dtype_text(self.dtype), dtype_text(array.dtype)
            message = f"input '{self.name}' has element type {wanted}, but the value given has {given}"
            raise MscError(Diagnostic("MSC0604", message, help=f"convert it: array.astype('{self.dtype.name}')"))


def arguments(function: FuncOp) -> Iterator[tuple[BlockArgument, Mapping[str, Attribute]]]:
    """Each argument of a function with its attributes."""
    given = [d.data for d in function.arg_attrs.data] if function.arg_attrs is not None else []
    for i, argument in enumerate(function.args):
        yield argument, given[i] if given else {}


def declared(argument: BlockArgument, attributes: Mapping[str, Attribute]) -> Declared:
    """What an argument takes; its name is `ms.name`, or its own name, or its number."""
    type_ = shaped_type(argument)
    name, dtype, order = attributes.get(MS_NAME), attributes.get(MS_DTYPE), order_of(attributes)
    shape = [-1 if n == DYNAMIC_INDEX else n for n in type_.get_shape()]
    return Declared(
        name.data if isinstance(name, StringAttr) else argument.name_hint or str(argument.index),
        numpy_dtype(dtype.data) if isinstance(dtype, StringAttr) else element_dtype(type_.get_element_type()),
        tuple(shape if order is None else (shape[axis] for axis in inverse(order))),
        order,
    )


def named_results(function: FuncOp, results: Sequence[Array]) -> dict[str, Array]:
    """The results of an entry function by name, as long as the lengths among them say (`ms.counts`), without these."""
    given = [attributes.data for attributes in function.res_attrs or ()]
    names = [a.data if isinstance(a := d.get(MS_NAME), StringAttr) else f"output{k}" for k, d in enumerate(given)]
    lists = [c if isa(c := d.get(COUNTS), ArrayAttr[StringAttr]) else () for d in given]
    counts = {name: [n.data for n in of] for name, of in zip(names, lists, strict=True)}
    found = dict(zip(names, results, strict=True))
    lengths = {n: int(found[n]) for of in counts.values() for n in of if n}
    return {n: a[tuple(slice(lengths.get(c)) for c in counts[n])] for n, a in found.items() if n not in lengths}


def note_sizes(found: dict[str, int], name: str, names: Sequence[str], shape: Sequence[int]) -> None:
    """Note the sizes of the dimensions `names` of an input ("" for one that is no name). Raises MSC0603."""
    if len(names) != len(shape):
        text = f"input '{name}' has shape {list(shape)}: rank {len(shape)} instead of {len(names)}"
        raise MscError(Diagnostic("MSC0603", text))
    for dimension, size in zip(names, shape, strict=True):
        if dimension and found.setdefault(dimension, size) != size:
            message = f"dimension '{dimension}' is {found[dimension]}, but {size} in input '{name}'"
            raise MscError(Diagnostic("MSC0603", message))


def arranged(expected: Sequence[Declared], inputs: Mapping[str, Array] | Sequence[Array]) -> tuple[Array, ...]:
    """The inputs in order, checked, as the function sees them. Raises MSC0601 to MSC0604."""
    ordered = _by_name([d.name for d in expected], inputs) if isinstance(inputs, Mapping) else tuple(inputs)
    if len(ordered) != len(expected):
        names = ", ".join(d.name for d in expected)
        message = f"the model takes {len(expected)} inputs ({names}), but {len(ordered)} are given"
        raise MscError(Diagnostic("MSC0601", message))
    for declaration, array in zip(expected, ordered, strict=True):
        declaration.check(array)
    return tuple(declaration.inside(array) for declaration, array in zip(expected, ordered, strict=True))


def _by_name(names: Sequence[str], inputs: Mapping[str, Array]) -> tuple[Array, ...]:
    for given in inputs:
        if given not in names:
            help_ = did_you_mean(given, names) or f"its inputs: {', '.join(names) or 'none'}"
            raise MscError(Diagnostic("MSC0602", f"the model has no input '{given}'", help=help_))
    missing = [name for name in names if name not in inputs]
    if missing:
        raise MscError(Diagnostic("MSC0601", f"no value is given for input {', '.join(map(repr, missing))}"))
    return tuple(inputs[name] for name in names)
