"""Operations on scores by blocks of queries: loops over batches, heads and blocks.

Only the scores of one block exist at a time. They are stored transposed, `[keys, queries]`, as in
`attention_blocks`; a block has all keys of its queries. Results that sum over keys are results for the queries of the
block; results that sum over queries are accumulated from block to block.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from xdsl.ir import SSAValue

from msc.analysis.constancy import is_constant
from msc.dialects import ms
from msc.dialects.ms.base import MsOp
from msc.dialects.ms.linear import MatrixProductOp
from msc.dialects.ms.reductions import ReductionOp
from msc.dialects.ms.shapes import broadcast_shapes, tensor_type
from msc.graph.emitter import Emitter
from msc.graph.graph_loops import empty, index, loop_over
from msc.graph_kernel.attention.attention_blocks import accumulator
from msc.graph_kernel.attention.attention_operands import AxisBlocks, slices, stored, transposed
from msc.graph_kernel.attention.score_work import ScoreWork

_Use: TypeAlias = tuple[MsOp, int]
"""An operand of the work."""

_Given: TypeAlias = Mapping[_Use, SSAValue]
"""Operands for some of the queries."""


class ScoreBlocks:
    """Writes the loops for some work; `parts` are the queries in blocks."""

    def __init__(self, emit: Emitter, work: ScoreWork, parts: Sequence[AxisBlocks]) -> None:
        self._emit, self._work, self._parts = emit, work, parts

    def results(self) -> list[SSAValue]:
        """What the ends give, in their order."""
        emit, work = self._emit, self._work
        uses = [(op, i) for op, i in work.outside() if op.shape(i)]
        given = [{use: self._operand(use, part) for use in uses} for part in self._parts]
        found = self._of_batch(emit, work.shape[:-2], given)
        return [self._as_read(end, value) for end, value in zip(work.ends, found, strict=True)]

    def _as_read(self, end: MatrixProductOp, value: SSAValue) -> SSAValue:
        """A result as the readers of an end have it: blocks give one query or key a row, in f32 where they add up."""
        rank = len(self._emit.shape(value))
        if self._work.place(end) == 1:
            value = self._emit(ms.TransposeOp, value, perm=[*range(rank - 2), rank - 1, rank - 2])
        return self._emit.cast(value, end.result_dtype())

    def _operand(self, use: _Use, part: AxisBlocks) -> SSAValue:
        """An operand as `[batch..., blocks of queries, matrix]`; axes in which it does not vary are 1.

        Operands of products have one query or key a row. All others are `[keys, queries]` where that costs no call
        anything, else `[queries, keys]`, and are transposed block by block.
        """
        op, number = use
        emit, work, shape = self._emit, self._work, op.shape(number)
        value = emit.reshape(stored(op, number), (*(1 for _ in range(len(work.shape) - len(shape))), *shape))
        if isinstance(op, MatrixProductOp):
            value = transposed(emit, value) if work.has_columns(op, number) else value
        if not work.is_of_queries(op, number):
            *batch, keys, size = emit.shape(value)
            return emit.reshape(value, (*batch, 1, keys, size))
        value = part.cut(emit, value, -2)
        *batch, queries, width = emit.shape(value)
        blocks, size = part.split(queries)
        value = emit.reshape(value, (*batch, blocks, size, width))
        return _columns(emit, value) if self._is_turned_before(use) else value

    def _is_turned_before(self, use: _Use) -> bool:
        op, number = use
        return not isinstance(op, MatrixProductOp) and (1 in op.shape(number)[-2:] or is_constant(op.operands[number]))

    def _of_batch(self, emit: Emitter, axes: Sequence[int], given: Sequence[_Given]) -> list[SSAValue]:
        """The results for the axes of the batch that are left: a loop over the first, or none where its size is 1."""
        if not axes:
            return self._of_queries(emit, given)
        count, *inner = axes
        if count == 1:
            found = self._of_batch(emit, inner, [slices(emit, part) for part in given])
            return [emit.reshape(value, (1, *emit.shape(value))) for value in found]

        def collect(body: Emitter, number: SSAValue, stacks: Sequence[SSAValue]) -> Sequence[SSAValue]:
            found = self._of_batch(body, inner, [slices(body, part, number) for part in given])
            return [body(ms.InsertSliceOp, stack, number, v) for stack, v in zip(stacks, found, strict=True)]

        stacks = [empty(emit, (count, *inner, *self._matrix(end)), self._dtype(end)) for end in self._work.ends]
        return list(loop_over(emit, (index(emit, 0), index(emit, count)), stacks, collect))

    def _of_queries(self, emit: Emitter, given: Sequence[_Given]) -> list[SSAValue]:
        """The results for all queries of a head: a loop over each part that has more than one block."""
        sums: dict[MatrixProductOp, SSAValue] = {}
        rows: dict[MatrixProductOp, list[SSAValue]] = {}
        for part, operands in zip(self._parts, given, strict=True):
            found = self._of_part(emit, part, operands, sums)
            for end, value in zip(self._work.ends, found, strict=True):
                if self._work.sums_over_queries(end):
                    sums[end] = value
                else:
                    rows.setdefault(end, []).append(value)
        return [sums[end] if end in sums else _joined(emit, rows[end]) for end in self._work.ends]

    def _of_part(
        self, emit: Emitter, part: AxisBlocks, given: _Given, sums: Mapping[MatrixProductOp, SSAValue]
    ) -> list[SSAValue]:
        """The results for a part of the queries, with the sums of the parts before in them."""
        ends = self._work.ends
        if part.count == 1:
            found = self._of_block(emit, slices(emit, given))
            return [emit(ms.AddOp, sums[end], v) if end in sums else v for end, v in zip(ends, found, strict=True)]

        def next_block(body: Emitter, number: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            found = self._of_block(body, slices(body, given, number))
            return [
                body(ms.AddOp, before, value)
                if self._work.sums_over_queries(end)
                else body(ms.InsertSliceOp, before, number, value)
                for end, before, value in zip(ends, carried, found, strict=True)
            ]

        start = [sums.get(end, self._start(emit, end, part)) for end in ends]
        found = loop_over(emit, (index(emit, 0), index(emit, part.count)), start, next_block)
        rows = part.end - part.start
        return [
            value if self._work.sums_over_queries(end) else emit.reshape(value, (rows, emit.shape(value)[-1]))
            for end, value in zip(ends, found, strict=True)
        ]

    def _start(self, emit: Emitter, end: MatrixProductOp, part: AxisBlocks) -> SSAValue:
        """What an end carries before the first block: sums of nothing, or places for the results of each block."""
        rows, width = self._matrix(end)
        if self._work.sums_over_queries(end):
            return emit(ms.BroadcastToOp, emit.scalar(0, self._dtype(end)), shape=[rows, width])
        return empty(emit, (part.count, part.size, width), self._dtype(end))

    def _of_block(self, emit: Emitter, given: _Given) -> list[SSAValue]:
        """What the ends give for a block of queries."""
        made: dict[SSAValue, SSAValue] = {}
        for op in self._work.ops:
            operands = [self._read(emit, (op, i), given, made) for i in range(len(op.operands))]
            made[op.results[0]] = _applied(emit, op, operands)
        return [self._ended(emit, end, given, made) for end in self._work.ends]

    def _read(self, emit: Emitter, use: _Use, given: _Given, made: Mapping[SSAValue, SSAValue]) -> SSAValue:
        """An operand in a block."""
        op, number = use
        if use not in given:
            return made.get(op.operands[number], op.operands[number])
        if isinstance(op, MatrixProductOp):
            return given[use]
        value = given[use] if self._is_turned_before(use) else _columns(emit, given[use])
        return emit.cast(value, op.dtype(number))

    def _ended(self, emit: Emitter, end: MatrixProductOp, given: _Given, made: Mapping[SSAValue, SSAValue]) -> SSAValue:
        """The product of the scores of a block with the other operand, one key or query a row."""
        place = self._work.place(end)
        scores, other = made[end.operands[place]], given[end, 1 - place]
        value = emit(ms.MatmulOp, scores, other, transpose_a=not self._work.sums_over_queries(end))
        return emit.cast(value, self._dtype(end))

    def _matrix(self, end: MatrixProductOp) -> tuple[int, int]:
        rows, width = end.result_shape()[-2:]
        return (rows, width) if self._work.place(end) == 0 else (width, rows)

    def _dtype(self, end: MatrixProductOp) -> str:
        """The element type in which blocks give the result of an end: f32 at least where they add up."""
        dtype = end.result_dtype()
        return accumulator(dtype) if self._work.sums_over_queries(end) else dtype


def _applied(emit: Emitter, op: MsOp, operands: Sequence[SSAValue]) -> SSAValue:
    """An operation on scores, on transposed ones."""
    match op:
        case MatrixProductOp():
            queries, keys = operands
            return emit(ms.MatmulOp, keys, queries, transpose_b=True)
        case ms.SoftmaxOp():
            return emit(ms.SoftmaxOp, operands[0], axis=0)
        case ReductionOp():
            return emit(type(op), operands[0], axis=[0], keep_dims=True)
        case _:
            shape = broadcast_shapes(op.name, *(emit.shape(operand) for operand in operands))
            types = [tensor_type(op.result_dtype(), shape)]
            made = type(op).create(operands=operands, result_types=types, properties=op.properties)
            return emit.insert(made).results[0]


def _columns(emit: Emitter, value: SSAValue) -> SSAValue:
    """The matrices of a value the other way round."""
    *batch, rows, columns = emit.shape(value)
    if 1 in (rows, columns):
        return emit.reshape(value, (*batch, columns, rows))
    rank = len(batch)
    return emit(ms.TransposeOp, value, perm=[*range(rank), rank + 1, rank])


def _joined(emit: Emitter, rows: Sequence[SSAValue]) -> SSAValue:
    return rows[0] if len(rows) == 1 else emit(ms.ConcatOp, *rows, axis=0)
