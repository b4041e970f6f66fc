"""The blocks of keys that each block of queries sees: completely masked blocks are not computed.

If a mask is known before a call, computed or given as data, operations on constants turn it into a table
(`value_bounds`), from which the loops over keys read their bounds. A key is masked for a query if its exponential is
zero for all inputs: its score is minus infinity, or so far below a score that another key of this query certainly has
that the exponential underflows. The smallest number of a type therefore masks like an infinity, except for a query for
which it masks all keys.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from math import inf

import numpy as np
from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import IndexType, i64
from xdsl.ir import Operation, SSAValue

from msc.dialects import ms
from msc.dialects.arrays import numpy_dtype
from msc.dialects.element_types import element_type
from msc.dialects.ms.base import MsOp
from msc.graph.emitter import Emitter
from msc.graph.value_bounds import Bounds, ValueBounds
from msc.graph_kernel.attention.attention import Attention
from msc.graph_kernel.attention.attention_blocks import accumulator
from msc.graph_kernel.attention.attention_operands import AxisBlocks
from msc.ir.typed import tensor_type

UNDERFLOW = 1024.0
"""e to the power of minus this is zero in every type."""
START, PLAIN, END = range(3)
"""Columns of a table: the first block seen, the first of these under a mask, and the one behind the last."""


class VisibleKeys:
    """The tables of an attention, as operations on constants that `emit` appends."""

    def __init__(self, emit: Emitter, found: Attention) -> None:
        self._emit, self._found, self._bounds = emit, found, ValueBounds(emit)
        self._inside: set[SSAValue] = {op.results[0] for op in (found.scores, *found.before)}
        self._masks = [op for op in found.before if self._effect(op) is not None]

    @property
    def unmasked(self) -> Attention:
        """The attention of a block of queries and the blocks of keys before its first one under a mask."""
        return replace(self._found, before=tuple(op for op in self._found.before if op not in self._masks))

    def table(self, rows: AxisBlocks, keys: AxisBlocks) -> SSAValue | None:
        """For each block of queries the columns `START`, `PLAIN` and `END`; None if nothing is known of any mask."""
        if not self._masks or keys.count == 1:
            return None
        emit, number = self._emit, self._emit(ms.IotaOp, shape=[1, keys.count], axis=1, dtype=element_type("i64"))
        hidden = self._of_blocks(ms.ReduceAllOp, self._hidden, rows, keys)
        masked = self._of_blocks(ms.ReduceAnyOp, self._masked, rows, keys)

        def extremum(operation: type[MsOp], value: SSAValue) -> SSAValue:
            return emit(operation, value, axis=[1], keep_dims=True)

        end = extremum(ms.ReduceMaxOp, emit(ms.SelectOp, hidden, 0, emit(ms.AddOp, number, 1)))
        start = extremum(ms.ReduceMinOp, emit(ms.SelectOp, hidden, end, number))
        is_first = emit(ms.LogicalAndOp, masked, emit(ms.GreaterEqualOp, number, start))
        plain = extremum(ms.ReduceMinOp, emit(ms.SelectOp, is_first, emit(ms.MinimumOp, number, end), end))
        return emit(ms.ConcatOp, start, plain, end, axis=1)

    def _of_blocks(self, reduction: type[MsOp], value: SSAValue, rows: AxisBlocks, keys: AxisBlocks) -> SSAValue:
        """What holds of all or any pairs of blocks, `[blocks of queries, blocks of keys]`."""
        emit = self._emit
        part = keys.cut(emit, rows.cut(emit, value, 0), 1)
        blocks = emit.reshape(part, (rows.count, rows.size, keys.count, keys.size))
        return emit(reduction, blocks, axis=[1, 3])

    @cached_property
    def _hidden(self) -> SSAValue:
        """Which keys are hidden from which queries, `[queries, keys]`, in all batches and heads."""
        emit, score = self._emit, self._score()
        low, high = (self._matrix(emit.cast(v, accumulator(emit.dtype(v)))) for v in (score.low, score.high))
        best = emit(ms.ReduceMaxOp, low, axis=[-1], keep_dims=True)
        hidden = emit(
            ms.LogicalOrOp, emit(ms.EqualOp, high, -inf), emit(ms.LessOp, emit(ms.AddOp, high, UNDERFLOW), best)
        )
        return self._of_all(ms.ReduceAllOp, hidden)

    @cached_property
    def _masked(self) -> SSAValue:
        """Which scores some mask may change, `[queries, keys]`."""
        effects = [effect for op in self._masks if (effect := self._effect(op)) is not None]
        found, *others = (self._of_all(ms.ReduceAnyOp, self._matrix(effect)) for effect in effects)
        for other in others:
            found = self._emit(ms.LogicalOrOp, found, other)
        return found

    def _matrix(self, value: SSAValue) -> SSAValue:
        """A value of two axes at least."""
        shape = self._emit.shape(value)
        return self._emit.reshape(value, (*(1 for _ in range(2 - len(shape))), *shape))

    def _of_all(self, reduction: type[MsOp], value: SSAValue) -> SSAValue:
        """What holds in all or any batches and heads."""
        batch = list(range(len(self._emit.shape(value)) - 2))
        value = self._emit(reduction, value, axis=batch) if batch else value
        return self._emit(ms.BroadcastToOp, value, shape=list(self._found.shape[-2:]))

    def _score(self) -> Bounds:
        """Bounds of scores under masks, on the premise that no score is so large that the sum of four overflows."""
        most = float(np.finfo(numpy_dtype(accumulator(self._found.scores.result_dtype()))).max) / 4
        score, is_plain = self._bounds.within(self._found.scores.results[0], -most, most), True
        for op in self._found.before:
            assert isinstance(op, MsOp)
            is_plain &= all(v in self._inside or tensor_type(v).element_count() == 1 for v in op.operands)
            given = (score if v in self._inside else self._bounds.of(v) for v in op.operands)
            score = self._bounds.within(op.results[0], -most, most) if is_plain else self._bounds.applied(op, [*given])
        return score

    def _effect(self, op: Operation) -> SSAValue | None:
        """Where an operation may change a score; None if it is no mask, or nothing is known of it."""
        spine = next(i for i, v in enumerate(op.operands) if v in self._inside)
        mask = op.operands[0 if isinstance(op, ms.SelectOp) else 1 - spine] if len(op.operands) > 1 else None
        if mask is None or mask in self._inside or tensor_type(mask).element_count() == 1:
            return None
        bounds, emit = self._bounds.of(mask), self._emit
        if not emit.shape(bounds.low) and not emit.shape(bounds.high):
            return None
        match op:
            case ms.AddOp() | ms.SubOp() if isinstance(op, ms.AddOp) or spine == 0:
                return emit(ms.LogicalOrOp, emit(ms.NotEqualOp, bounds.low, 0.0), emit(ms.NotEqualOp, bounds.high, 0.0))
            case ms.SelectOp():
                return bounds.high if spine == 2 else emit(ms.LogicalNotOp, bounds.low)
            case _:
                return None


def columns(emit: Emitter, table: SSAValue, count: int) -> list[SSAValue]:
    """The columns of a row of a table as indices, which lie between 0 and the number of blocks."""

    def add(op: Operation) -> SSAValue:
        emit.ops.append(op)
        return op.results[0]

    def index(value: int) -> SSAValue:
        return add(arith.ConstantOp.from_int_and_width(value, IndexType()))

    found: list[SSAValue] = []
    for column in (START, PLAIN, END):
        read = add(tensor.ExtractOp(table, [index(column)], i64))
        inside = add(arith.MaxSIOp(add(arith.IndexCastOp(read, IndexType())), index(0)))
        found.append(add(arith.MinSIOp(inside, index(count))))
    return found
