"""Parameters that a call updates in place: the array of a parameter is given to the compiled graph and comes back new.

Programs see no array change that they hold: one that anything beside its parameter refers to, a tensor of its value, a
view or the constant of another graph, is copied first. CPython counts who refers to an array, which NumPy asks for the
same reason before it resizes one or reuses a temporary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from sys import getrefcount
from typing import TYPE_CHECKING, cast

import numpy as np
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, ModuleOp, i64

from msc.frontend.parameter import Parameter
from msc.frontend.reader.journal import TensorContent
from msc.frontend.reader.structures import Leaf
from msc.ir.donation import UPDATES
from msc.ir.entry import find_entry
from msc.ir.storage_order import ANY, LAYOUT
from msc.support.arrays import Array

if TYPE_CHECKING:
    from msc.frontend.reader.capture import Captured
    from msc.runtime.compiled_model import CompiledModel


@dataclass(frozen=True)
class ParameterUpdate:
    """A parameter, the argument that is its value before the call, and the result that is its value after."""

    parameter: Parameter
    argument: int
    result: int


def updates_of(captured: Captured) -> list[ParameterUpdate]:
    """The parameters that a graph reads and updates, each with a result of its own."""
    arguments = {id(given.parameter): k for k, given in enumerate(captured.graph.inputs) if given.parameter is not None}
    found: dict[int, ParameterUpdate] = {}
    for effect in captured.effects:
        slot, value = effect.slot, effect.value
        if not isinstance(slot, TensorContent) or not isinstance(value, Leaf) or value.index >= len(captured.outputs):
            continue
        if isinstance(slot.holder, Parameter) and id(slot.holder) in arguments:
            update = ParameterUpdate(slot.holder, arguments[id(slot.holder)], value.index)
            found.setdefault(value.index, update)
    return list(found.values())


def note_updates(module: ModuleOp, updates: Sequence[ParameterUpdate]) -> None:
    """Say in a module which results update which arguments. Their axes may lie in any order."""
    function = find_entry(module)
    assert function is not None
    assert function.arg_attrs is not None
    assert function.res_attrs is not None
    arguments, results = list(function.arg_attrs), list(function.res_attrs)
    for update in updates:
        updated = IntegerAttr(update.argument, i64)
        arguments[update.argument] = DictionaryAttr({**arguments[update.argument].data, LAYOUT: ANY})
        results[update.result] = DictionaryAttr({**results[update.result].data, UPDATES: updated})
    function.arg_attrs, function.res_attrs = ArrayAttr(arguments), ArrayAttr(results)


@dataclass(frozen=True)
class UpdatesInPlace:
    """The updates that calls of a compiled model make where the parameters' arrays lie."""

    model: CompiledModel
    updates: Sequence[ParameterUpdate]

    def prepare(self, arrays: list[Array]) -> None:
        """Have in `arrays`, what a call is given, and in the parameters themselves arrays that the call may update."""
        for update in self.updates:
            position = update.argument
            if not _is_only_here(arrays, position) or not self.model.can_update(position, arrays[position]):
                arrays[position] = self.model.state(self.model.signature.inputs[position].name, arrays[position])
                update.parameter.content = arrays[position]
            update.parameter.version += 1


def _is_only_here(arrays: Sequence[Array], position: int) -> bool:
    """Whether nothing but its parameter and this sequence refers to an array, or to the memory that it is a view of."""
    if getrefcount(arrays[position]) > _OF_ARRAY:
        return False
    owner = cast(object, arrays[position].base)
    if owner is None:
        return arrays[position].flags.owndata
    return type(owner) is np.ndarray and owner.flags.owndata and getrefcount(owner) <= _OF_OWNER


_OF_ARRAY = 3
"""References to an array that only its parameter has: the parameter's, the sequence's, and that of asking."""

_OF_OWNER = 3
"""References to the memory of a view that only its parameter has: the view's, the variable's, and that of asking."""
