"""Pass `block-attention`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.context import Context
from xdsl.dialects import arith, scf, tensor
from xdsl.dialects.builtin import IndexType, ModuleOp, i64
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from msc.dialects.ms.activations import SoftmaxOp
from msc.dialects.ms.entries import EntryOp, SetEntryOp
from msc.dialects.ms.linear import MatmulOp, MatrixProductOp
from msc.dialects.ms.shapes import shape_of, tensor_type
from msc.dialects.open_sizes import has_open_sizes
from msc.graph_kernel.attention import Attention, attention
from msc.graph_kernel.expanders.emitter import Emitter
from msc.ir import typed
from msc.ir.locations import set_location
from msc.targets.cpu import CpuTarget, cpu_target

LEAST_ROWS = 8
"""Rows of a block below which its products would read keys and values for too little work."""


@dataclass(frozen=True)
class BlockAttention(ModulePass):
    """Compute attention a block of rows at a time, where its scores would leave the second cache.

    Takes: a graph with `softmax(Q K^T ...) V`, any elementwise work (scale, mask) before and after the softmax. Gives:
    loops over batches, heads and blocks of rows around the same operations on matrices; the scores of one block are all
    that ever exists of them. Keys and values of a head are packed once for all of its blocks (`hoist-invariants`).
    Left alone: scores that fit the cache, numbers of rows without a divisor that is a block, and all where calls decide
    sizes. Keeps: the meaning;
    each row is summed whole. Option: `target`, whose second cache decides. Run it before `expand-composites`.
    Source: the tiling by rows of Rabe and Staats, Self-attention does not need O(n^2) memory, 2021.
    """

    name = "block-attention"
    target: str = "native"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        target = cpu_target(self.target)
        if has_open_sizes(op):
            return
        for product in [o for o in op.walk() if isinstance(o, MatrixProductOp)]:
            found = attention(product)
            rows = _rows(found, target) if found is not None else None
            if found is not None and rows is not None:
                _Blocks(found, rows).replace()


def _rows(found: Attention, target: CpuTarget) -> int | None:
    """The rows of a block: as many as a quarter of the second cache takes, the rest being for keys and values."""
    queries = found.shape[-2]
    if found.score_bytes <= target.l2:
        return None
    most = max(LEAST_ROWS, target.l2 // 4 // found.row_bytes)
    divisors = [n for n in range(LEAST_ROWS, min(most, queries // 2) + 1) if queries % n == 0]
    return max(divisors, default=None)


_Use: TypeAlias = tuple[Operation, int]
"""An operand of an operation of the attention."""


class _Blocks:
    """Writes the loops. A value that enters has an axis for each loop, of size 1 where it is the same in all of it."""

    def __init__(self, found: Attention, rows: int) -> None:
        self._found, self._rows = found, rows
        self._axes = (*found.shape[:-2], found.shape[-2] // rows)

    def replace(self) -> None:
        """Put the loops in front of the product, and erase the operations that they stand for."""
        found, product = self._found, self._found.product
        emit = Emitter(product)
        given = {use: emit.reshape(use[0].operands[use[1]], self._aligned(*use)) for use in found.inputs()}
        value = emit.reshape(self._loops(emit, self._axes, given), product.result_shape())
        value.name_hint = product.results[0].name_hint
        for op in emit.ops:
            set_location(op, product.location)
        Rewriter.replace_op(product, emit.ops, [value])
        for op in reversed((found.scores, *found.between)):
            Rewriter.erase_op(op)

    def _aligned(self, op: Operation, number: int) -> tuple[int, ...]:
        """The shape under which an operand has an axis for each loop in front of its matrix."""
        shape = shape_of(typed.tensor_type(op.operands[number]))
        whole = (*(1 for _ in range(len(self._axes) + 1 - len(shape))), *shape)
        *batch, rows, columns = whole
        is_right = isinstance(op, MatrixProductOp) and number == 1
        if is_right or rows == 1:
            return (*batch, 1, rows, columns)
        return (*batch, rows // self._rows, self._rows, columns)

    def _loops(self, emit: Emitter, axes: Sequence[int], given: Mapping[_Use, SSAValue]) -> SSAValue:
        """The result for the axes that are left: a loop over the first of them, or none where its size is 1."""
        if not axes:
            return self._block(emit, given)
        count, *inner = axes
        moving = {use: v for use, v in given.items() if count > 1 and emit.shape(v)[0] == count}
        fixed = {use: emit.reshape(v, emit.shape(v)[1:]) for use, v in given.items() if use not in moving}
        if count == 1:
            value = self._loops(emit, inner, fixed)
            return emit.reshape(value, (1, *emit.shape(value)))
        body, block = Emitter(self._found.product), Block(arg_types=[IndexType()])
        number = _scalar_tensor(body, block.args[0])
        entries = {use: body(EntryOp, v, number) for use, v in moving.items()}
        value = self._loops(body, inner, {**fixed, **entries})
        stack = block.insert_arg(tensor_type(body.dtype(value), (count, *body.shape(value))), 1)
        collected = body(SetEntryOp, stack, number, value)
        block.add_ops([*body.ops, scf.YieldOp(collected)])
        return _loop(emit, count, block)

    def _block(self, emit: Emitter, given: Mapping[_Use, SSAValue]) -> SSAValue:
        """The attention of one block of rows, all operands matrices."""
        found = self._found
        made: dict[SSAValue, SSAValue] = {}
        for op in (found.scores, *found.between, found.product):
            operands = [given[op, i] if (op, i) in given else made[v] for i, v in enumerate(op.operands)]
            made[op.results[0]] = self._row_wise(emit, op, operands)
            emit.ops[-1].location = op.location
        return made[found.product.results[0]]

    def _row_wise(self, emit: Emitter, op: Operation, operands: Sequence[SSAValue]) -> SSAValue:
        if isinstance(op, MatrixProductOp):
            return emit(MatmulOp, *operands, transpose_b=op.flag("transpose_b"))
        if isinstance(op, SoftmaxOp):
            return emit(SoftmaxOp, *operands)
        element = typed.tensor_type(op.results[0]).element_type
        type_ = type(typed.tensor_type(op.results[0]))(element, [self._rows, self._found.shape[-1]])
        emit.ops.append(type(op).create(operands=operands, result_types=[type_], properties=op.properties))
        return emit.ops[-1].results[0]


def _scalar_tensor(emit: Emitter, index: SSAValue) -> SSAValue:
    wide = arith.IndexCastOp(index, i64)
    made = tensor.FromElementsOp(wide.result, result_type=tensor_type("i64", ()))
    emit.ops += [wide, made]
    return made.results[0]


def _loop(emit: Emitter, count: int, block: Block) -> SSAValue:
    """A loop whose block takes the index and what is collected so far."""
    zero, end, one = (arith.ConstantOp.from_int_and_width(n, IndexType()) for n in (0, count, 1))
    empty = tensor.EmptyOp([], block.args[1].type)
    loop = scf.ForOp(zero, end, one, [empty], block)
    emit.ops += [zero, end, one, empty, loop]
    return loop.results[0]
