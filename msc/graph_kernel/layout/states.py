"""States of a model at their reads and updates: in an entry function, or in the loop of steps that carries them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.dialects import scf
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from msc.dialects.ms.attributes import MS_NAME
from msc.graph_kernel.layout.transposed_updates import Order, retyped
from msc.ir.donation import updates
from msc.ir.storage_order import LAYOUT, is_any, note_order


@dataclass(frozen=True)
class State:
    """An updated argument of a function whose order of axes is the compiler's to choose.

    `block` is the innermost one that carries it: its argument `index` is the old value, operand `position` of its
    terminator the new one. `outside` are the values that hold it around that block.
    """

    function: FuncOp
    argument: int
    block: Block
    index: int
    position: int
    outside: tuple[SSAValue, ...] = ()

    @property
    def old(self) -> BlockArgument:
        """What a step reads."""
        return self.block.args[self.index]

    @property
    def new(self) -> SSAValue:
        """What a step makes of it."""
        return _end_of(self.block).operands[self.position]

    def transpose(self, order: Order) -> None:
        """Let it lie in an order, wherever it is carried; what computes the new value is not changed."""
        note_order(self.function, self.argument, order)
        for value in (*self.outside, self.old):
            retyped(value, order)


def open_states(function: FuncOp) -> Iterator[State]:
    """The updated arguments whose order is open, and of which no size is."""
    given = function.arg_attrs.data if function.arg_attrs is not None else ()
    end = _end_of(function.body.block)
    assert isinstance(end, ReturnOp)
    for result, argument in updates(function).items():
        if is_any(function, argument) and set(given[argument].data) <= {MS_NAME, LAYOUT}:
            yield _innermost(State(function, argument, function.body.block, argument, result))


def _innermost(state: State) -> State:
    """The state in the loop that carries it, if nothing beside the loop reads it."""
    if state.old.uses.get_length() != 1 or state.new.uses.get_length() != 1:
        return state
    (use,) = state.old.uses
    match use.operation:
        case scf.WhileOp() as loop:
            inside = _in_while(state, loop, use.index)
        case scf.ForOp() as loop:
            inside = _in_for(state, loop, use.index)
        case _:
            inside = None
    return state if inside is None else _innermost(inside)


def _in_while(state: State, loop: scf.WhileOp, operand: int) -> State | None:
    tested = loop.before_region.block.args[operand]
    passed = [use for use in tested.uses if isinstance(use.operation, scf.ConditionOp)]
    if len(passed) != 1 or tested.uses.get_length() != 1:
        return None
    index = passed[0].index - 1
    if state.new is not loop.results[index]:
        return None
    outside = (*state.outside, state.old, tested, state.new)
    return State(state.function, state.argument, loop.after_region.block, index, operand, outside)


def _in_for(state: State, loop: scf.ForOp, operand: int) -> State | None:
    bounds = len(loop.operands) - len(loop.iter_args)
    index = operand - bounds
    if index < 0 or state.new is not loop.results[index]:
        return None
    outside = (*state.outside, state.old, state.new)
    return State(state.function, state.argument, loop.body.block, index + 1, index, outside)


def _end_of(block: Block) -> Operation:
    end = block.last_op
    assert end is not None
    return end
