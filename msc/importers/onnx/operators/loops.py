"""Loops of a model as `scf.for` and `scf.while`: what they carry, what they read entry by entry, what they collect.

A loop of few iterations is unrolled instead: where the number of the iteration is known, its body folds and fuses with
the others, which saves more than SHORT copies of it cost.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from xdsl.dialects import arith, scf, tensor
from xdsl.dialects.builtin import IndexType, StringAttr, i1, i64
from xdsl.ir import Block, Operation, Region, SSAValue

from msc.dialects import ms
from msc.dialects.arrays import numpy_dtype
from msc.dialects.gk import LOOP_LABEL
from msc.dialects.ms.shapes import tensor_type
from msc.importers.onnx.node import Node
from msc.importers.onnx.operators.movement import cut
from msc.importers.onnx.values import OnnxValue
from msc.support.diagnostics import Diagnostic, MscError

SHORT = 4
"""Iterations up to which a loop is unrolled."""


class ChangingValue(MscError):
    """A value that a loop carries has another type after an iteration."""


@dataclass(frozen=True)
class Iteration:
    """The iteration that is being written: its number, or the scalar that counts, and how many there are, if known."""

    node: Node
    counter: int | SSAValue
    count: int | None = None

    def number(self, backwards: bool = False) -> OnnxValue:
        """The number of the iteration as a tensor; counted from the last one `backwards`."""
        counter = self._counter(backwards)
        if isinstance(counter, int):
            return self.node.constant(np.array(counter, np.int64))
        wide = _emit(self.node, arith.IndexCastOp(counter, i64))
        type_ = tensor_type("i64", ())
        return OnnxValue(type_, ssa=_emit(self.node, tensor.FromElementsOp(wide, result_type=type_)))

    def _counter(self, backwards: bool) -> int | SSAValue:
        if not backwards:
            return self.counter
        assert self.count is not None
        if isinstance(self.counter, int):
            return self.count - 1 - self.counter
        return _emit(self.node, arith.SubiOp(_count(self.node, self.count - 1), self.counter))

    def entry(self, x: OnnxValue, backwards: bool = False) -> OnnxValue:
        """The entry of x along its first axis that belongs to the iteration."""
        counter = self._counter(backwards)
        if isinstance(counter, int):
            return self.node.reshape(cut(self.node, x, {0: (counter, counter + 1, 1)}), x.shape[1:])
        return self.node(ms.ExtractSliceOp, x, self.number(backwards))


@dataclass(frozen=True)
class Collected:
    """A value of each iteration, to be stacked in the order of the iterations, or `backwards`."""

    value: OnnxValue
    backwards: bool = False


Body: TypeAlias = Callable[[Iteration, Sequence[OnnxValue]], tuple[Sequence[OnnxValue], Sequence[Collected]]]
"""From an iteration and the values carried into it to those carried on, and those collected."""

Results: TypeAlias = tuple[list[OnnxValue], list[OnnxValue]]
"""The carried values after the last iteration, and the stacks of what was collected."""


def iterate(node: Node, count: int, carried: Sequence[OnnxValue], body: Body) -> Results:
    """A loop of a known number of iterations, at least one. Raises ChangingValue."""
    if count <= SHORT and not node.builder.has_open_sizes:
        return unrolled(node, count, carried, body)
    return WrittenLoop(node, carried, body, count).repeat(count)


def unrolled(node: Node, count: int, carried: Sequence[OnnxValue], body: Body) -> Results:
    """A copy of the body for each iteration."""
    columns: list[list[OnnxValue]] = []
    for number in range(count):
        carried, collected = body(Iteration(node, number, count), carried)
        columns = columns or [[] for _ in collected]
        for column, item in zip(columns, collected, strict=True):
            column.insert(0 if item.backwards else len(column), item.value)
    return list(carried), [node(ms.StackOp, *column, axis=0) for column in columns]


class WrittenLoop:
    """A loop whose body has been written; it may collect values only if `count`, the number of iterations, is known.

    Raises ChangingValue where the body gives values of other types than those carried into it.
    """

    def __init__(self, node: Node, carried: Sequence[OnnxValue], body: Body, count: int | None = None) -> None:
        self._node, self._starts = node, list(carried)
        self._block = Block(arg_types=[IndexType(), *(v.type for v in carried)])
        self._depends = frozenset[str]().union(*(v.depends for v in carried))
        with node.builder.inside(self._block):
            step = Iteration(node, self._block.args[0], count)
            arguments = [self._argument(v, a) for v, a in zip(carried, self._block.args[1:], strict=True)]
            results, collected = body(step, arguments)
            self._results = [_of_type(node, v, start) for v, start in zip(results, carried, strict=True)]
            self._stacks = [self._stacked(step, item) for item in collected]
        self._depends |= frozenset[str]().union(*(v.depends for v in (*self._results, *self._stacks)))
        self._keep_unchanged(arguments)

    def _argument(self, start: OnnxValue, argument: SSAValue) -> OnnxValue:
        argument.name_hint = start.ssa.name_hint if start.ssa is not None else None
        return OnnxValue(start.type, ssa=argument, depends=self._depends, narrow=start.narrow)

    def _stacked(self, step: Iteration, item: Collected) -> OnnxValue:
        """The stack so far with the value of this iteration in its place."""
        assert step.count is not None
        type_ = tensor_type(item.value.dtype, (step.count, *item.value.shape))
        before = OnnxValue(type_, ssa=self._block.insert_arg(type_, len(self._block.args)))
        return self._node(ms.InsertSliceOp, before, step.number(item.backwards), item.value)

    def _keep_unchanged(self, arguments: Sequence[OnnxValue]) -> None:
        """What no iteration changes is not carried."""
        self._changing = [k for k, a in enumerate(arguments) if self._results[k].ssa is not a.ssa]
        for k in reversed(range(len(arguments))):
            if k not in self._changing:
                argument = self._block.args[1 + k]
                argument.replace_all_uses_with(self._ssa(self._starts[k]))
                self._block.erase_arg(argument)

    def repeat(self, count: int | OnnxValue) -> Results:
        """Run `count` times: an `scf.for`."""
        node = self._node
        given = [self._ssa(self._results[k]) for k in self._changing]
        self._block.add_op(scf.YieldOp(*given, *map(self._ssa, self._stacks)))
        limit = _count(node, count) if isinstance(count, int) else self._extent(count)
        starts = [*map(self._ssa, self._start()), *map(self._new_stack, self._stacks)]
        loop = node.builder.insert(scf.ForOp(_index(node, 0), limit, _index(node, 1), starts, self._block))
        loop.attributes[LOOP_LABEL] = StringAttr(node.proto.op_type.lower())
        collected = loop.results[len(self._changing) :]
        return self._finals(loop.results), [self._value(v, r) for v, r in zip(self._stacks, collected, strict=True)]

    def _new_stack(self, stack: OnnxValue, *, is_filled: bool = True) -> SSAValue:
        """What is collected, before the first iteration: nothing, or zeros where it may not be filled."""
        if is_filled and not self._node.builder.has_open_sizes:
            return _emit(self._node, tensor.EmptyOp([], stack.type))
        zero = self._node.constant(np.zeros((), numpy_dtype(stack.dtype)))
        return self._ssa(self._node(ms.BroadcastToOp, zero, shape=stack.shape))

    def repeat_while(self, first: OnnxValue, again: OnnxValue, limit: OnnxValue | None) -> tuple[Results, OnnxValue]:
        """Run while a condition holds: `first` before the first iteration, `again` of the body before all others.

        And at most `limit` times; how often it ran comes last. An `scf.while` that carries the number of the iteration
        and the condition in front.
        """
        node = self._node
        with node.builder.inside(self._block):
            following = _emit(node, arith.AddiOp(self._block.args[0], _index(node, 1)))
            given = [self._ssa(self._results[k]) for k in self._changing]
            stacks = map(self._ssa, self._stacks)
            node.builder.insert(scf.YieldOp(following, self._condition(again), *given, *stacks))
        bound = None if limit is None else self._extent(limit)
        stacks = (self._new_stack(stack, is_filled=False) for stack in self._stacks)
        starts = [_index(node, 0), self._condition(first), *map(self._ssa, self._start()), *stacks]
        before = self._checking(starts, bound)
        types = [a.type for a in self._block.args]
        loop = node.builder.insert(scf.WhileOp(starts, types, Region(before), Region(self._block)))
        ran = _emit(node, arith.IndexCastOp(loop.results[0], i64))
        type_ = tensor_type("i64", ())
        count = OnnxValue(type_, ssa=_emit(node, tensor.FromElementsOp(ran, result_type=type_)), depends=self._depends)
        collected = loop.results[1 + len(self._changing) :]
        found = [self._value(v, r) for v, r in zip(self._stacks, collected, strict=True)]
        return (self._finals(loop.results[1:]), found), count

    def _checking(self, starts: Sequence[SSAValue], bound: SSAValue | None) -> Block:
        """The block that decides whether there is another iteration."""
        block = Block(arg_types=[v.type for v in starts])
        number, condition, *carried = block.args
        with self._node.builder.inside(block):
            if bound is not None:
                inside = _emit(self._node, arith.CmpiOp(number, bound, "slt"))
                condition = _emit(self._node, arith.AndIOp(inside, condition))
            self._node.builder.insert(scf.ConditionOp(condition, number, *carried))
        return block

    def _start(self) -> list[OnnxValue]:
        return [self._starts[k] for k in self._changing]

    def _finals(self, results: Sequence[SSAValue]) -> list[OnnxValue]:
        finals = list(self._starts)
        for k, result in zip(self._changing, results, strict=False):
            finals[k] = self._value(self._results[k], result)
        return finals

    def _value(self, like: OnnxValue, result: SSAValue) -> OnnxValue:
        return OnnxValue(like.type, ssa=result, depends=self._depends, narrow=like.narrow)

    def _ssa(self, value: OnnxValue) -> SSAValue:
        return self._node.builder.ssa(value)

    def _condition(self, value: OnnxValue) -> SSAValue:
        self._depends |= value.depends
        return scalar_of(self._node, value)

    def _extent(self, count: OnnxValue) -> SSAValue:
        self._depends |= count.depends
        return _emit(self._node, arith.IndexCastOp(scalar_of(self._node, count), IndexType()))


def scalar_of(node: Node, value: OnnxValue) -> SSAValue:
    """The one element of a boolean or i64 tensor, as the conditions and bounds of `scf` take it."""
    flat = node.builder.ssa(node.reshape(value, ()))
    return _emit(node, tensor.ExtractOp(flat, [], i1 if value.dtype == "i1" else i64))


def _of_type(node: Node, value: OnnxValue, start: OnnxValue) -> OnnxValue:
    """A value that a body gives, which has the type of the one carried into it. Raises ChangingValue."""
    if value.type == start.type and value.narrow == start.narrow:
        return value
    message = f"{node.label}: a value that it carries is {start.type} before an iteration, but {value.type} after it"
    help_ = "give it one shape (the largest, padded), or let the model fix how often the loop runs"
    raise ChangingValue(Diagnostic("MSC0719", message, node.place, help=help_))


def _index(node: Node, value: int) -> SSAValue:
    return _emit(node, arith.ConstantOp.from_int_and_width(value, IndexType()))


def _count(node: Node, value: int) -> SSAValue:
    """A number of iterations; one that may be another at other sizes is an element of a tensor, as sizes are."""
    if not node.builder.has_open_sizes:
        return _index(node, value)
    return _emit(node, arith.IndexCastOp(scalar_of(node, node.constant(np.array(value, np.int64))), IndexType()))


def _emit(node: Node, op: Operation) -> SSAValue:
    return node.builder.insert(op).results[0]
