"""Kernels that update weights, computed on transposed tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeAlias

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block, BlockArgument, Operation, SSAValue
from xdsl.rewriter import Rewriter

from msc.dialects.gk import KernelOp
from msc.dialects.ms.elementwise import ElementwiseOp
from msc.dialects.ms.linear import MatrixProductOp
from msc.dialects.ms.movement import TransposeOp
from msc.dialects.ms.structure import ConstantOp
from msc.graph_kernel.layout.packings import transposes_left
from msc.ir.typed import element_type, static_shape
from msc.targets.machine import Machine

Order: TypeAlias = tuple[int, ...]
"""A permutation of axes, as `ms.transpose` has it."""


@dataclass(frozen=True)
class Update:
    """A kernel that computes the new values of states, all of one type, from their old ones and a gradient."""

    kernel: KernelOp
    states: Sequence[BlockArgument]
    results: Sequence[SSAValue]
    """The new values, in the order of the states."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Of each state, in its own order."""
        return static_shape(self.results[0])

    def can_transpose(self, order: Order, target: Machine) -> bool:
        """Whether the kernel computes the same on transposed tensors, and no worse.

        All is element by element but a matrix product, whose operands change places such that none has to be packed for
        it, and transpositions of the gradient, by which the axis that lies last stays that.
        """
        gives = set(self.kernel.results) == set(self.results)
        inside = (op for op in self.kernel.body.block.ops if op is not self.kernel.terminator)
        return gives and all(self._is_transposable(op, order, target) for op in inside)

    def transpose(self, order: Order) -> None:
        """Compute on transposed tensors, as the states are already."""
        body, whole = self.kernel.body.block, set[SSAValue]()
        for index in self._state_inputs:
            whole.add(retyped(body.args[index], order))
        for op in list(body.ops):
            if isinstance(op, MatrixProductOp):
                whole.add(_exchanged(op))
            elif isinstance(op, ElementwiseOp) and static_shape(op.results[0]) == self.shape:
                self._transpose_operands(op, whole, order)
                whole.add(retyped(op.results[0], order))
        for result in list(self.kernel.results):
            retyped(result, order)

    @property
    def _state_inputs(self) -> list[int]:
        return [index for index, value in enumerate(self.kernel.inputs) if value in self.states]

    def _is_transposable(self, op: Operation, order: Order, target: Machine) -> bool:
        if isinstance(op, ElementwiseOp):
            return all(self._is_read(value, order) for value in op.operands)
        if isinstance(op, MatrixProductOp):
            rank = len(order)
            swapped = order == (*range(rank - 2), rank - 1, rank - 2)
            is_gradient = static_shape(op.result) == self.shape and not self._reads_state(op)
            return swapped and is_gradient and not _packs_when_exchanged(op, target)
        return isinstance(op, ConstantOp) or (isinstance(op, TransposeOp) and not self._reads_state(op))

    def _reads_state(self, op: Operation) -> bool:
        states = [self.kernel.body.block.args[index] for index in self._state_inputs]
        return any(value in states for value in op.operands)

    def _is_read(self, value: SSAValue, order: Order) -> bool:
        """Whether an element-wise operation may read a value: one element, or one for each of its own."""
        shape = static_shape(value)
        if shape != self.shape:
            return prod(shape) == 1
        if isinstance(value.owner, ElementwiseOp | MatrixProductOp):
            return True
        argument = isinstance(value, BlockArgument) and value.index in self._state_inputs
        return argument or _last_in_memory(value) == order[-1]

    def _transpose_operands(self, op: Operation, whole: set[SSAValue], order: Order) -> None:
        """Let an operation read transposed tensors: those that were transposed, and views of all others."""
        for index, value in enumerate(op.operands):
            if value not in whole and static_shape(value) == self.shape and prod(self.shape) > 1:
                view = TransposeOp(value, perm=order)
                view.location = op.location
                _block_of(op).insert_op_before(view, op)
                op.operands[index] = view.results[0]


def retyped(value: SSAValue, order: Order) -> SSAValue:
    """The value with its axes in an order, in the place of the old one."""
    shape = static_shape(value)
    type_ = TensorType(element_type(value), [shape[axis] for axis in order])
    return Rewriter.replace_value_with_new_type(value, type_)


def _last_in_memory(value: SSAValue) -> int | None:
    """The axis of a transposed input that lies last in memory; None for what is computed."""
    axis = len(static_shape(value)) - 1
    moves: list[TransposeOp] = []
    while isinstance(value.owner, TransposeOp):
        moves.append(value.owner)
        value = value.owner.operands[0]
    for move in reversed(moves):
        axis = move.permutation().index(axis)
    return axis if isinstance(value, BlockArgument) else None


def _packs_when_exchanged(op: MatrixProductOp, target: Machine) -> bool:
    """Whether the right operand, as the left one of the transposed product, would have to be packed."""
    rows = op.result_shape()[-2]
    return not op.flag("transpose_b") and transposes_left(op.shape(1), rows, op.dtype(1), target)


def _exchanged(op: MatrixProductOp) -> SSAValue:
    """The transposed product: its operands, transposed, in the other order. Every sum has its terms in their order."""
    a, b = not op.flag("transpose_b"), not op.flag("transpose_a")
    transposed = product_like(op, op.b, op.a, transpose_a=a, transpose_b=b)
    Rewriter.replace_op(op, transposed)
    return transposed.result


def product_like(
    op: MatrixProductOp, left: SSAValue, right: SSAValue, *, transpose_a: bool = False, transpose_b: bool = False
) -> MatrixProductOp:
    """A product of other operands, of the same kind and at the same place in the source."""
    found = type(op)(left, right, transpose_a=transpose_a, transpose_b=transpose_b)
    found.location = op.location
    return found


def _block_of(op: Operation) -> Block:
    block = op.parent
    assert block is not None
    return block
