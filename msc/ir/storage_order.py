"""Arguments whose axes lie in another order than the caller's tensor has them: `{ms.layout = [1, 0]}`.

Axis k of such an argument is axis `layout[k]` of the caller's tensor: the caller's memory holds the transposed tensor,
row by row. Before the kernels are known, `{ms.layout = "any"}` says that the caller takes any order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, StringAttr, i64
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute
from xdsl.utils.hints import isa

LAYOUT = "ms.layout"
"""The attribute of an argument: the order in which its axes lie, or `"any"`."""

ANY = StringAttr("any")
"""The order is the compiler's to choose."""


def order_of(attributes: Mapping[str, Attribute]) -> tuple[int, ...] | None:
    """The order in which the axes of an argument lie; None for its own."""
    found = attributes.get(LAYOUT)
    return tuple(axis.value.data for axis in found) if isa(found, ArrayAttr[IntegerAttr]) else None


def is_any(function: FuncOp, argument: int) -> bool:
    """Whether the order of an argument's axes is the compiler's to choose."""
    given = function.arg_attrs
    return given is not None and given.data[argument].data.get(LAYOUT) == ANY


def inverse(order: Sequence[int]) -> tuple[int, ...]:
    """The order that undoes another one."""
    return tuple(order.index(axis) for axis in range(len(order)))


def note_order(function: FuncOp, argument: int, order: Sequence[int]) -> None:
    """Say of an argument in which order its axes lie."""
    assert function.arg_attrs is not None
    given = list(function.arg_attrs)
    axes = ArrayAttr([IntegerAttr(axis, i64) for axis in order])
    given[argument] = DictionaryAttr({**given[argument].data, LAYOUT: axes})
    function.arg_attrs = ArrayAttr(given)
