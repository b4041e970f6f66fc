"""The gradient of `scf.while`, which says how often it runs at most: `ms.bound`.

A copy of the loop counts its iterations and keeps what each one begins with in stacks. The gradient runs back through
the condition's block at the end, then through one iteration after the other, in an `scf.for`. A loop that runs more
often than it says has gradients that are NaN: its stacks have been too small.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import cast

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, i64
from xdsl.ir import Block, Operation, Region, SSAValue

from msc.dialects.ms.arithmetic import AddOp, MulOp
from msc.dialects.ms.comparison import LessEqualOp
from msc.dialects.ms.elementwise import SelectOp
from msc.dialects.ms.slices import ExtractSliceOp, InsertSliceOp
from msc.graph.autodiff.again import computed_again
from msc.graph.autodiff.loops import BOUND, bound_of
from msc.graph.autodiff.reverse import Reverse, activity, captured, is_of_numbers, refusal
from msc.graph.autodiff.stacks import index, remove_dead, scalar_of, stack_type, tensor_of


def while_gradient(reverse: Reverse, op: Operation) -> None:
    """Add the gradients of what a loop begins with and reads to `reverse`. Raises MSC0414 without a bound."""
    loop, most = cast(scf.WhileOp, op), bound_of(op)
    if most is None:
        message = "the gradient of a while loop needs to know how often it runs at most"
        raise refusal(op, message, f"say so: {{{BOUND} = 100}}, or write a for loop")
    _While(reverse, loop, most).write()


class _While:
    def __init__(self, reverse: Reverse, loop: scf.WhileOp, most: int) -> None:
        self._reverse, self._loop, self._most, self._emit = reverse, loop, most, reverse.emit
        self._before, self._after = loop.before_region.block, loop.after_region.block
        self._outside = [v for v in captured(loop) if v in reverse.active]
        self._carried = self._active()

    def _active(self) -> list[int]:
        """Which of the values that an iteration begins with depend on variables, in some iteration."""
        found = {k for k, v in enumerate(self._loop.arguments) if v in self._reverse.active and is_of_numbers(v.type)}
        while True:
            begun = self._through(self._before, [self._before.args[k] for k in found], 1)
            ended = self._through(self._after, [self._after.args[k] for k in begun], 0)
            if ended | found == found:
                return sorted(found)
            found |= ended

    def _through(self, block: Block, variables: Sequence[SSAValue], first: int) -> set[int]:
        """Which of the values that a block's terminator passes on depend on its variables or on those outside."""
        last = block.last_op
        assert last is not None
        active = activity([o for o in block.ops if o is not last], [*variables, *self._outside])
        return {k for k, v in enumerate(last.operands[first:]) if v in active and is_of_numbers(v.type)}

    def write(self) -> None:
        stacks = [Block(arg_types=[stack_type(a.type, self._most)]).args[0] for a in self._before.args]
        block = Block(arg_types=[IndexType(), *(self._before.args[k].type for k in self._carried)])
        for value in self._outside:
            block.insert_arg(value.type, len(block.args))
        count = Block(arg_types=[IndexType()]).args[0]
        self._write_iteration(block, count, stacks)
        remove_dead(block.ops)
        number, ends = self._counted(stacks)
        starts = self._ended(ends, number)
        scalar = scalar_of(number, IndexType(), self._emit)
        count.replace_all_uses_with(scalar)
        made = self._emit.insert(scf.ForOp(index(self._emit, 0), scalar, index(self._emit, 1), starts, block))
        made.attributes[BOUND] = IntegerAttr(self._most, i64)
        for k, part in zip(self._carried, made.results, strict=False):
            self._reverse.add(self._loop.arguments[k], part)
        for value, part in zip(self._outside, made.results[len(self._carried) :], strict=True):
            self._reverse.add(value, part)

    def _write_iteration(self, block: Block, count: SSAValue, stacks: Sequence[SSAValue]) -> None:
        """An iteration anew, from its entries of the stacks, and backwards; `block` holds the gradients so far."""
        emit = self._emit.within(block)
        last = emit.insert(arith.SubiOp(count, index(emit, 1))).result
        place = tensor_of(emit.insert(arith.SubiOp(last, block.args[0])).result, emit)
        begun: dict[SSAValue, SSAValue] = {
            argument: scalar_of(emit(ExtractSliceOp, stack, place), argument.type, emit)
            for argument, stack in zip(self._before.args, stacks, strict=True)
        }
        first = computed_again(emit, self._before, begun)
        second = computed_again(emit, self._after, dict(zip(self._after.args, first.results[1:], strict=True)))
        ops = [*first.ops, *second.ops]
        inputs = [begun[self._before.args[k]] for k in self._carried]
        inner = Reverse(emit, activity(ops, [*inputs, *self._outside]))
        for value, gradient in zip(self._outside, block.args[1 + len(inputs) :], strict=True):
            inner.gradients[value] = gradient
        for k, gradient in zip(self._carried, block.args[1:], strict=False):
            inner.add(second.results[k], gradient)
        inner.run(ops)
        block.add_op(scf.YieldOp(*map(inner.of, inputs), *(inner.gradients[v] for v in self._outside)))

    def _counted(self, stacks: Sequence[SSAValue]) -> tuple[SSAValue, Sequence[SSAValue]]:
        """The loop once more: the number of its iterations, and what the last look at its condition began with.

        It fills the stacks that the gradient reads.
        """
        emit = self._emit
        kept = [k for k, stack in enumerate(stacks) if stack.first_use is not None]
        # Not empty ones, as for loops have: this one may not run at all, and nothing unset may be read.
        empty = [emit.zeros(stacks[k].type) for k in kept]
        starts = [emit.scalar(0, "i64"), *empty, *self._loop.arguments]
        extra = 1 + len(kept)
        before = Block(arg_types=[v.type for v in starts])
        looking = computed_again(
            emit.within(before), self._before, dict(zip(self._before.args, before.args[extra:], strict=True))
        )
        before.add_op(scf.ConditionOp(looking.results[0], *before.args, *looking.results[1:]))
        after = Block(arg_types=[*(v.type for v in starts), *(a.type for a in self._after.args)])
        inside, number = emit.within(after), after.args[0]
        filled = [
            inside(InsertSliceOp, stack, number, tensor_of(after.args[extra + k], inside))
            for k, stack in zip(kept, after.args[1:extra], strict=True)
        ]
        again = computed_again(inside, self._after, dict(zip(self._after.args, after.args[len(starts) :], strict=True)))
        after.add_op(scf.YieldOp(inside(AddOp, number, inside.scalar(1, "i64")), *filled, *again.results))
        types = [a.type for a in after.args]
        made = emit.insert(scf.WhileOp(starts, types, Region(before), Region(after)))
        made.attributes[BOUND] = self._loop.attributes[BOUND]
        for k, stack in zip(kept, made.results[1:extra], strict=True):
            stacks[k].replace_all_uses_with(stack)
        return made.results[0], made.results[extra : len(starts)]

    def _ended(self, ends: Sequence[SSAValue], number: SSAValue) -> list[SSAValue]:
        """The gradients of what the last look at the condition began with, and of what is outside."""
        emit = self._emit
        again = computed_again(emit, self._before, dict(zip(self._before.args, ends, strict=True)))
        inputs = [ends[k] for k in self._carried]
        inner = again.reverse([*inputs, *self._outside])
        for value, result in zip(again.results[1:], self._loop.results, strict=True):
            if result in self._reverse.gradients:
                inner.add(value, self._reverse.gradients[result])
        inner.run(again.ops)
        return [self._checked(inner.of(v), number) for v in (*inputs, *self._outside)]

    def _checked(self, gradient: SSAValue, number: SSAValue) -> SSAValue:
        """A gradient, or NaN if the loop ran more often than it says."""
        emit, dtype = self._emit, self._emit.dtype(gradient)
        inside = emit(LessEqualOp, number, emit.scalar(self._most, "i64"))
        return emit(MulOp, gradient, emit(SelectOp, inside, emit.scalar(1.0, dtype), emit.scalar(math.nan, dtype)))
