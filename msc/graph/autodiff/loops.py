"""The gradient of `scf.for`.

A copy of the loop keeps what is carried into each iteration in stacks (a tape). The loop of the gradient runs from the
last iteration to the first, computes the values of an iteration anew from its entries of the stacks, and walks back
through them; what the loop reads from outside has its gradient carried along. Stacks that nothing reads are not kept.
Where only a run knows how many iterations there are, the loop says how many at most: `ms.bound`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.dialects import arith, scf, tensor
from xdsl.dialects.builtin import IndexType, IntegerAttr
from xdsl.ir import Block, Operation, SSAValue

from msc.dialects.ms.slices import ExtractSliceOp, InsertSliceOp
from msc.graph.autodiff.again import computed_again
from msc.graph.autodiff.emitting import GradientEmitter
from msc.graph.autodiff.reverse import Reverse, activity, captured, is_of_numbers, refusal
from msc.graph.autodiff.stacks import index, remove_dead, scalar_of, stack_type, tensor_of
from msc.ir.control_flow import integer_constant
from msc.ir.typed import tensor_type as type_of

BOUND = "ms.bound"
"""The attribute of a loop: the largest number of iterations, which its gradient keeps room for."""


@dataclass(frozen=True)
class _Trips:
    """How often a loop runs: at most, and as a value of the graph."""

    most: int
    number: SSAValue


def for_gradient(reverse: Reverse, op: Operation) -> None:
    """Add the gradients of what a loop begins with and reads to `reverse`."""
    loop = cast(scf.ForOp, op)
    emit, body = reverse.emit, loop.body.block
    trips = _trips(loop, emit)
    outside = [v for v in captured(op) if v in reverse.active]
    carried = _carried(loop, reverse, outside)
    stacks = [Block(arg_types=[stack_type(a.type, trips.most)]).args[0] for a in body.args[1:]]
    starts = [*(reverse.of(loop.results[k]) for k in carried), *(emit.zeros(v.type) for v in outside)]
    block = Block(arg_types=[IndexType(), *(v.type for v in starts)])
    _write_reversed(emit.within(block), block, loop, trips, stacks, carried, outside)
    remove_dead(block.ops)
    _fill_stacks(emit, loop, stacks, trips.most)
    made = emit.insert(scf.ForOp(index(emit, 0), trips.number, index(emit, 1), starts, block))
    _keep_bound(loop, made)
    for k, part in zip(carried, made.results, strict=False):
        reverse.add(loop.iter_args[k], part)
    for value, part in zip(outside, made.results[len(carried) :], strict=True):
        reverse.add(value, part)


def bound_of(op: Operation) -> int | None:
    """How often a loop says that it runs at most."""
    found = op.attributes.get(BOUND)
    return found.value.data if isinstance(found, IntegerAttr) else None


def _keep_bound(loop: scf.ForOp, made: scf.ForOp) -> None:
    if BOUND in loop.attributes:
        made.attributes[BOUND] = loop.attributes[BOUND]


def _trips(loop: scf.ForOp, emit: GradientEmitter) -> _Trips:
    """How often a loop runs. Raises MSC0414 where only a run knows, and the loop has no bound."""
    numbers = [integer_constant(bound) for bound in (loop.lb, loop.ub, loop.step)]
    known = [n for n in numbers if n is not None]
    if len(known) == len(numbers):
        most = len(range(*known))
        return _Trips(most, index(emit, most))
    most = bound_of(loop)
    if most is None:
        message = "the gradient of a loop needs the number of its iterations, which is not a constant here"
        raise refusal(loop, message, f"say how many there are at most: {{{BOUND} = 100}}")
    length = emit.insert(arith.SubiOp(loop.ub, loop.lb)).result
    return _Trips(most, emit.insert(arith.CeilDivSIOp(length, loop.step)).result)


def _carried(loop: scf.ForOp, reverse: Reverse, outside: Sequence[SSAValue]) -> list[int]:
    """Which of the values that a loop carries depend on variables, in some iteration."""
    found = {k for k, v in enumerate(loop.iter_args) if v in reverse.active and is_of_numbers(v.type)}
    body, last = loop.body.block, loop.body.block.last_op
    assert last is not None
    while True:
        active = activity([o for o in body.ops if o is not last], [*(body.args[1 + k] for k in found), *outside])
        more = {k for k, v in enumerate(last.operands) if v in active and is_of_numbers(v.type)} | found
        if more == found:
            return sorted(found)
        found = more


def _write_reversed(
    emit: GradientEmitter,
    block: Block,
    loop: scf.ForOp,
    trips: _Trips,
    stacks: Sequence[SSAValue],
    carried: Sequence[int],
    outside: Sequence[SSAValue],
) -> None:
    """The body of the gradient's loop: an iteration anew, backwards; `block` holds the gradients so far."""
    body = loop.body.block
    last = emit.insert(arith.SubiOp(trips.number, index(emit, 1))).result
    number = emit.insert(arith.SubiOp(last, block.args[0])).result
    place = tensor_of(number, emit)
    arguments: dict[SSAValue, SSAValue] = {body.args[0]: _variable(loop, number, emit)}
    for argument, stack in zip(body.args[1:], stacks, strict=True):
        arguments[argument] = scalar_of(emit(ExtractSliceOp, stack, place), argument.type, emit)
    inputs = [arguments[body.args[1 + k]] for k in carried]
    again = computed_again(emit, body, arguments)
    inner = again.reverse([*inputs, *outside])
    for value, gradient in zip(outside, block.args[1 + len(carried) :], strict=True):
        inner.gradients[value] = gradient
    for k, gradient in zip(carried, block.args[1:], strict=False):
        inner.add(again.results[k], gradient)
    inner.run(again.ops)
    block.add_op(scf.YieldOp(*map(inner.of, inputs), *(inner.gradients[v] for v in outside)))


def _variable(loop: scf.ForOp, number: SSAValue, emit: GradientEmitter) -> SSAValue:
    """What the loop's variable is in the iteration of a number."""
    scaled = emit.insert(arith.MuliOp(number, loop.step)).result
    return emit.insert(arith.AddiOp(scaled, loop.lb)).result


def _fill_stacks(emit: GradientEmitter, loop: scf.ForOp, stacks: Sequence[SSAValue], most: int) -> None:
    """The loop once more, with the stacks that the gradient reads: they take the places of those in `stacks`."""
    body = loop.body.block
    kept = [k for k, stack in enumerate(stacks) if stack.first_use is not None]
    if not kept:
        return
    types = [type_of(stacks[k].type) for k in kept]
    # A loop that may not run at all must not leave a stack unset.
    runs = all(integer_constant(v) is not None for v in (loop.lb, loop.ub)) and most > 0
    empty = [emit.insert(tensor.EmptyOp([], type_)).tensor if runs else emit.zeros(type_) for type_ in types]
    block = Block(arg_types=[*(a.type for a in body.args), *types])
    inside = emit.within(block)
    place = _from_zero(loop, block.args[0], inside)
    filled = [
        inside(InsertSliceOp, stack, place, tensor_of(block.args[1 + k], inside))
        for k, stack in zip(kept, block.args[len(body.args) :], strict=True)
    ]
    again = computed_again(inside, body, dict(zip(body.args, block.args, strict=False)))
    block.add_op(scf.YieldOp(*again.results, *filled))
    made = emit.insert(scf.ForOp(loop.lb, loop.ub, loop.step, [*loop.iter_args, *empty], block))
    _keep_bound(loop, made)
    for k, stack in zip(kept, made.results[len(loop.results) :], strict=True):
        stacks[k].replace_all_uses_with(stack)


def _from_zero(loop: scf.ForOp, variable: SSAValue, emit: GradientEmitter) -> SSAValue:
    """The number of an iteration, as a tensor."""
    if integer_constant(loop.lb) == 0 and integer_constant(loop.step) == 1:
        return tensor_of(variable, emit)
    offset = emit.insert(arith.SubiOp(variable, loop.lb)).result
    return tensor_of(emit.insert(arith.DivSIOp(offset, loop.step)).result, emit)
