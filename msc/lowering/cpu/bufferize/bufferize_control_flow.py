"""scf.if, scf.for and scf.while with tensors as results and carried values, on buffers.

A result of scf.if has one buffer that both branches write. A carried value of a loop has one buffer for all
iterations. The value that an iteration yields is computed in it directly if the old value is dead, or if its last
reader is a kernel that may work in place; otherwise it is copied into it at the end. Other values do not change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects import arith, scf, tensor
from xdsl.dialects.builtin import IndexType, TensorType
from xdsl.ir import Block, Operation, Region, SSAValue

from msc.ir.typed import tensor_type
from msc.lowering.cpu.buffer_types import buffer_type
from msc.lowering.cpu.bufferize.bufferizer import Bufferizer
from msc.lowering.cpu.bufferize.destinations import direct_destinations
from msc.lowering.cpu.failure import refuse


def bufferize_if(state: Bufferizer, op: Operation) -> None:
    """Both branches leave the tensor results in the same buffers."""
    if not isinstance(op, scf.IfOp):
        return
    positions = _tensor_positions(op.results)
    targets = [state.result_buffer(op.results[i]) for i in positions]
    then = _branch(state, op, op.true_region, positions, targets)
    otherwise = _branch(state, op, op.false_region, positions, targets)
    types = [r.type for r in op.results if not _is_tensor(r)]
    _finish(state, op, scf.IfOp(state.values[op.cond], types, then, otherwise))


def _branch(
    state: Bufferizer, op: scf.IfOp, region: Region, positions: Sequence[int], targets: Sequence[SSAValue]
) -> Region:
    if not region.blocks:
        return Region()
    source, target = region.block, Block()
    with state.inside(target):
        yielded = _yielded(op, source)
        tensors = [yielded[i] for i in positions]
        state.destinations |= direct_destinations(source, zip(tensors, targets, strict=True))
        state.translate(source)
        state.move(tensors, targets)
        state.emit(scf.YieldOp(*state.buffers(v for v in yielded if not _is_tensor(v))))
    return Region(target)


def bufferize_for(state: Bufferizer, op: Operation) -> None:
    """Carried tensors keep one buffer through all iterations, which is the result's buffer too."""
    if not isinstance(op, scf.ForOp):
        return
    body = op.body.block
    positions = _tensor_positions(op.results)
    targets = [state.result_buffer(op.results[i]) for i in positions]
    _start(state, [op.iter_args[i] for i in positions], targets)
    held: list[SSAValue] = [body.args[1 + i] for i in positions]
    block = _with_scalar_arguments(state, body, dict(zip(held, targets, strict=True)))
    lower, upper, step = (_index(state, value) for value in (op.lb, op.ub, op.step))
    with state.inside(block):
        _count_by_index(state, body.args[0], block)
        yielded = _yielded(op, body)
        tensors = [yielded[i] for i in positions]
        occupied = {target: [value] for target, value in zip(targets, held, strict=True)}
        state.destinations |= direct_destinations(
            body, zip(tensors, targets, strict=True), occupied, state.may_overwrite
        )
        state.translate(body)
        state.move(tensors, targets)
        state.emit(scf.YieldOp(*state.buffers(v for v in yielded if not _is_tensor(v))))
    new = scf.ForOp(lower, upper, step, state.buffers(v for v in op.iter_args if not _is_tensor(v)), block)
    _finish(state, op, new)


def _index(state: Bufferizer, value: SSAValue) -> SSAValue:
    """A bound of a loop as an index."""
    bound = state.values[value]
    if isinstance(bound.type, IndexType):
        return bound
    return state.emit(arith.IndexCastOp(bound, IndexType())).results[0]


def _count_by_index(state: Bufferizer, counter: SSAValue, block: Block) -> None:
    """Let a loop count by an index, whatever type its counter has: the loops of kernels do."""
    if isinstance(counter.type, IndexType):
        return
    old = block.args[0]
    index = block.insert_arg(IndexType(), 0)
    block.erase_arg(old)
    index.name_hint = counter.name_hint
    state.values[counter] = state.emit(arith.IndexCastOp(index, counter.type)).results[0]


def bufferize_while(state: Bufferizer, op: Operation) -> None:
    """The condition's and the body's arguments have buffers of their own, but for what the condition passes through."""
    if isinstance(op, scf.WhileOp):
        _While(state, op).replace()


class _While:
    def __init__(self, state: Bufferizer, op: scf.WhileOp) -> None:
        self.state, self.op = state, op
        self.before, self.after = op.before_region.block, op.after_region.block
        last = self.before.last_op
        if not isinstance(last, scf.ConditionOp):
            raise refuse("bufferize", op, "the first region of scf.while does not end with scf.condition")
        self.condition = last

    def replace(self) -> None:
        """Emit the loop on buffers."""
        state, op = self.state, self.op
        carried: dict[SSAValue, SSAValue] = {a: self._carried_buffer(a) for a in self.before.args if _is_tensor(a)}
        passed = {i: self._passed_buffer(i, carried) for i in _tensor_positions(op.results)}
        _start(state, [v for v in op.arguments if _is_tensor(v)], list(carried.values()))
        state.values |= {op.results[i]: buffer for i, buffer in passed.items()}
        before = self._translate_before(carried, passed)
        after = self._translate_after(carried, passed)
        scalars = [r for r in op.results if not _is_tensor(r)]
        given = state.buffers(v for v in op.arguments if not _is_tensor(v))
        _finish(state, op, scf.WhileOp(given, [r.type for r in scalars], Region(before), Region(after)))

    def _carried_buffer(self, argument: SSAValue) -> SSAValue:
        """The buffer of an argument of the condition; that of the result, if the condition passes it through."""
        passes = [i for i, value in enumerate(self.condition.args) if value is argument]
        if passes:
            return self.state.result_buffer(self.op.results[passes[0]])
        return self.state.new_buffer(buffer_type(tensor_type(argument)), argument.name_hint)

    def _passed_buffer(self, position: int, carried: dict[SSAValue, SSAValue]) -> SSAValue:
        value = self.condition.args[position]
        first = list(self.condition.args).index(value)
        if value in carried and first == position:
            return carried[value]
        return self.state.result_buffer(self.op.results[position])

    def _translate_before(self, carried: dict[SSAValue, SSAValue], passed: dict[int, SSAValue]) -> Block:
        state, condition = self.state, self.condition
        block = _with_scalar_arguments(state, self.before, carried)
        with state.inside(block):
            tensors, targets = [condition.args[i] for i in passed], list(passed.values())
            state.destinations |= direct_destinations(self.before, zip(tensors, targets, strict=True))
            state.translate(self.before)
            state.move(tensors, targets)
            scalars = state.buffers(v for v in condition.args if not _is_tensor(v))
            state.emit(scf.ConditionOp(state.values[condition.condition], *scalars))
        return block

    def _translate_after(self, carried: dict[SSAValue, SSAValue], passed: dict[int, SSAValue]) -> Block:
        state = self.state
        held: dict[SSAValue, SSAValue] = {self.after.args[i]: buffer for i, buffer in passed.items()}
        block = _with_scalar_arguments(state, self.after, held)
        with state.inside(block):
            yielded = _yielded(self.op, self.after)
            tensors, targets = [v for v in yielded if _is_tensor(v)], list(carried.values())
            occupied = {target: [a for a, buffer in held.items() if buffer is target] for target in targets}
            state.destinations |= direct_destinations(
                self.after, zip(tensors, targets, strict=True), occupied, state.may_overwrite
            )
            state.translate(self.after)
            state.move(tensors, targets)
            state.emit(scf.YieldOp(*state.buffers(v for v in yielded if not _is_tensor(v))))
        return block


def starts(op: scf.ForOp | scf.WhileOp) -> list[tuple[SSAValue, int | None]]:
    """What a loop starts with, each with the result in whose buffer it is carried; None if that is no result's."""
    if isinstance(op, scf.ForOp):
        return [(value, i) for i, value in enumerate(op.iter_args)]
    condition = op.before_region.block.last_op
    passed = list(condition.operands)[1:] if isinstance(condition, scf.ConditionOp) else []
    places = [passed.index(a) if a in passed else None for a in op.before_region.block.args]
    return list(zip(op.arguments, places, strict=True))


def _start(state: Bufferizer, values: Sequence[SSAValue], targets: Sequence[SSAValue]) -> None:
    """Bring what a loop starts with into its buffers; of tensor.empty there is nothing to bring."""
    given = [(v, t) for v, t in zip(values, targets, strict=True) if not isinstance(v.owner, tensor.EmptyOp)]
    state.move([v for v, _ in given], [t for _, t in given])


def _is_tensor(value: SSAValue) -> bool:
    return isinstance(value.type, TensorType)


def _tensor_positions(values: Sequence[SSAValue]) -> list[int]:
    return [i for i, value in enumerate(values) if _is_tensor(value)]


def _yielded(op: Operation, block: Block) -> Sequence[SSAValue]:
    if not isinstance(block.last_op, scf.YieldOp):
        raise refuse("bufferize", op, f"a region of '{op.name}' does not end with scf.yield")
    return block.last_op.arguments


def _with_scalar_arguments(state: Bufferizer, source: Block, buffers: Mapping[SSAValue, SSAValue]) -> Block:
    """A block with the arguments of `source` that are not tensors; those that are get the given buffers."""
    state.values.update(buffers)
    scalars = [a for a in source.args if not _is_tensor(a)]
    block = Block(arg_types=[a.type for a in scalars])
    for old, new in zip(scalars, block.args, strict=True):
        new.name_hint = old.name_hint
        state.values[old] = new
    return block


def _finish(state: Bufferizer, op: Operation, new: Operation) -> None:
    """Append the new operation; its results stand for those of the old one that are not tensors."""
    new.attributes |= op.attributes
    state.emit(new)
    scalars = [r for r in op.results if not _is_tensor(r)]
    for old, result in zip(scalars, new.results, strict=True):
        result.name_hint = old.name_hint
        state.values[old] = result
