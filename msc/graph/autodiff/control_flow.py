"""Gradients of branches and loops.

A branch is taken again, with its values computed anew, then backwards. A loop keeps what it carries into each iteration
in stacks (a tape); the loop of the gradient runs from the last iteration to the first, computes the values of an
iteration anew from its entry of the stacks, and walks back through them. What a loop reads from outside has its
gradient carried along. Stacks that nothing reads are not kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from xdsl.dialects import arith, scf, tensor
from xdsl.dialects.builtin import IndexType, IntegerAttr, TensorType, i1, i64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from msc.dialects.ms.arithmetic import AddOp, MulOp
from msc.dialects.ms.comparison import LessEqualOp
from msc.dialects.ms.elementwise import CastOp, SelectOp
from msc.dialects.ms.entries import EntryOp, SetEntryOp
from msc.dialects.ms.shapes import shape_of, tensor_type
from msc.dialects.element_types import dtype_name, element_type
from msc.graph.autodiff.emitting import GradientEmitter
from msc.graph.autodiff.reverse import Control, Reverse, activity, captured, has_gradient, refusal
from msc.ir.typed import tensor_type as type_of

BOUND = "ms.bound"
"""The attribute of an `scf.while`: the largest number of iterations, which its gradient keeps room for."""


def _if(reverse: Reverse, op: Operation) -> None:
    branch = cast(scf.IfOp, op)
    variables = [v for v in captured(op) if v in reverse.active]
    given = [reverse.gradients.get(r) for r in op.results]
    blocks = [_branch(reverse, region, variables, given) for region in op.regions]
    made = reverse.emit.insert(scf.IfOp(branch.cond, [v.type for v in variables], [blocks[0]], [blocks[1]]))
    for value, part in zip(variables, made.results, strict=True):
        reverse.add(value, part)


def _branch(
    reverse: Reverse, region: Region, variables: Sequence[SSAValue], given: Sequence[SSAValue | None]
) -> Block:
    """A branch, and the gradients of the variables through it."""
    block = Block()
    emit = reverse.emit.within(block)
    inner, results = _again(emit, region.block, {}, variables)
    for result, part in zip(results, given, strict=True):
        inner.add(result, part)
    inner.run(list(block.ops))
    block.add_op(scf.YieldOp(*map(inner.of, variables)))
    return block


def _again(
    emit: GradientEmitter, source: Block, arguments: Mapping[SSAValue, SSAValue], variables: Sequence[SSAValue]
) -> tuple[Reverse, Sequence[SSAValue]]:
    """The operations of a block once more, what its terminator gives, and the walk back through them."""
    mapped = dict(arguments)
    last = source.last_op
    assert last is not None and emit.op is not None
    made: list[Operation] = []
    for op in source.ops:
        if op is not last:
            copy = op.clone(mapped)
            emit.insert(copy)
            copy.location = op.location
            made.append(copy)
    inner = Reverse(emit, activity(made, variables))
    return inner, [mapped.get(v, v) for v in last.operands]


# Scalars of control and tensors that stacks hold.


def _tensor_of(value: SSAValue, emit: GradientEmitter) -> SSAValue:
    """A scalar of control as a tensor of rank 0."""
    if isinstance(value.type, TensorType):
        return value
    if isinstance(value.type, IndexType):
        value = emit.insert(arith.IndexCastOp(value, i64)).result
    return emit.insert(tensor.FromElementsOp(value, result_type=TensorType(value.type, []))).result


def _scalar_of(value: SSAValue, type_: Attribute, emit: GradientEmitter) -> SSAValue:
    """The scalar of control that `_tensor_of` made a tensor of."""
    if isinstance(type_, TensorType):
        return value
    element = type_of(value).element_type
    scalar = emit.insert(tensor.ExtractOp(value, [], element)).result
    return emit.insert(arith.IndexCastOp(scalar, IndexType())).result if isinstance(type_, IndexType) else scalar


def _stack_type(value: SSAValue, count: int) -> TensorType[Attribute]:
    """The type of a stack of the values that `value` has in each iteration."""
    if isinstance(value.type, TensorType):
        type_ = type_of(value)
        return tensor_type(dtype_name(type_.element_type) or "f32", (count, *shape_of(type_)))
    return TensorType(i64 if isinstance(value.type, IndexType) else value.type, [count])


def _index(emit: GradientEmitter, value: int) -> SSAValue:
    return emit.insert(arith.ConstantOp.from_int_and_width(value, IndexType())).result


def _remove_dead(block: Block) -> None:
    """Erase what nothing uses, from last to first."""
    for op in reversed(list(block.ops)):
        if op is not block.last_op and op.results and not any(r.first_use is not None for r in op.results):
            op.detach()
            op.erase(safe_erase=False)


# scf.for


def _for(reverse: Reverse, op: Operation) -> None:
    loop = cast(scf.ForOp, op)
    count = _trips(loop)
    emit, body = reverse.emit, loop.body.block
    outside = [v for v in captured(op) if v in reverse.active]
    carried = _carried(body.args[1:], reverse, outside, loop)
    stacks = [Block(arg_types=[_stack_type(a, max(count, 1))]).args[0] for a in body.args[1:]]
    starts = [*(reverse.of(loop.results[k]) for k in carried), *(emit.zeros(v.type) for v in outside)]
    block = Block(arg_types=[IndexType(), *(v.type for v in starts)])
    _write_reversed(emit.within(block), block, loop, count, stacks, carried, outside)
    _remove_dead(block)
    taped = _with_stacks(reverse, loop, stacks, count)
    made = emit.insert(scf.ForOp(_index(emit, 0), _index(emit, count), _index(emit, 1), starts, block))
    del taped
    for k, part in zip(carried, made.results, strict=False):
        reverse.add(loop.iter_args[k], part)
    for value, part in zip(outside, made.results[len(carried) :], strict=True):
        reverse.add(value, part)


def _trips(loop: scf.ForOp) -> int:
    """How often a loop runs. Raises MSC0414 where only a run knows."""
    numbers: list[int] = []
    for bound in (loop.lb, loop.ub, loop.step):
        owner = bound.owner
        if not isinstance(owner, arith.ConstantOp) or not isinstance(owner.value, IntegerAttr):
            raise refusal(loop, "the gradient of a loop needs the number of its iterations, which is not a constant")
        numbers.append(owner.value.value.data)
    return len(range(*numbers))


def _carried(
    arguments: Sequence[SSAValue], reverse: Reverse, outside: Sequence[SSAValue], loop: scf.ForOp
) -> list[int]:
    """Which of the values that a loop carries depend on variables, in some iteration."""
    found = {k for k, v in enumerate(loop.iter_args) if v in reverse.active and has_gradient(v.type)}
    body, last = loop.body.block, loop.body.block.last_op
    assert last is not None
    while True:
        active = activity((o for o in body.ops if o is not last), [*(arguments[k] for k in found), *outside])
        more = {k for k, v in enumerate(last.operands) if v in active and has_gradient(v.type)} | found
        if more == found:
            return sorted(found)
        found = more


def _write_reversed(
    emit: GradientEmitter,
    block: Block,
    loop: scf.ForOp,
    count: int,
    stacks: Sequence[SSAValue],
    carried: Sequence[int],
    outside: Sequence[SSAValue],
) -> None:
    """The body of the gradient's loop: an iteration anew, backwards; `block` holds the gradients so far."""
    body = loop.body.block
    number = emit.insert(arith.SubiOp(_index(emit, count - 1), block.args[0])).result
    place = _tensor_of(number, emit)
    arguments: dict[SSAValue, SSAValue] = {body.args[0]: _iteration(loop, number, emit)}
    for argument, stack in zip(body.args[1:], stacks, strict=True):
        arguments[argument] = _scalar_of(emit(EntryOp, stack, place), argument.type, emit)
    before = list(block.ops)
    inputs = [arguments[body.args[1 + k]] for k in carried]
    inner, results = _again(emit, body, arguments, [*inputs, *outside])
    for k, gradient in zip(carried, block.args[1:], strict=False):
        inner.add(results[k], gradient)
    for value, gradient in zip(outside, block.args[1 + len(carried) :], strict=True):
        inner.gradients[value] = gradient
    inner.run([o for o in block.ops if o not in before])
    block.add_op(scf.YieldOp(*map(inner.of, inputs), *(inner.gradients[v] for v in outside)))


def _iteration(loop: scf.ForOp, number: SSAValue, emit: GradientEmitter) -> SSAValue:
    """What the loop's variable is in an iteration of a number."""
    scaled = emit.insert(arith.MuliOp(number, loop.step)).result
    return emit.insert(arith.AddiOp(scaled, loop.lb)).result


def _with_stacks(reverse: Reverse, loop: scf.ForOp, stacks: Sequence[SSAValue], count: int) -> None:
    """The loop once more in front, with stacks of what it carries: those that the gradient reads."""
    emit, body = reverse.emit, loop.body.block
    kept = [k for k, stack in enumerate(stacks) if stack.first_use is not None]
    if not kept:
        return
    types = [_stack_type(body.args[1 + k], max(count, 1)) for k in kept]
    empty = [emit.insert(tensor.EmptyOp([], type_)).tensor for type_ in types]
    block = Block(arg_types=[*(a.type for a in body.args), *types])
    inside = emit.within(block)
    first = _from_zero(loop, block.args[0], inside)
    mapped: dict[SSAValue, SSAValue] = dict(zip(body.args, block.args, strict=False))
    filled = [
        inside(SetEntryOp, stack, first, _tensor_of(block.args[1 + k], inside))
        for k, stack in zip(kept, block.args[len(body.args) :], strict=True)
    ]
    _, results = _again(inside, body, mapped, [])
    block.add_op(scf.YieldOp(*results, *filled))
    made = emit.insert(scf.ForOp(loop.lb, loop.ub, loop.step, [*loop.iter_args, *empty], block))
    for k, stack in zip(kept, made.results[len(loop.results) :], strict=True):
        stacks[k].replace_all_uses_with(stack)


def _from_zero(loop: scf.ForOp, variable: SSAValue, emit: GradientEmitter) -> SSAValue:
    """The number of an iteration, as a tensor."""
    offset = emit.insert(arith.SubiOp(variable, loop.lb)).result
    return _tensor_of(emit.insert(arith.DivSIOp(offset, loop.step)).result, emit)


CONTROL: Mapping[str, Control] = {"scf.if": _if, "scf.for": _for}
"""The gradients of operations with regions."""
