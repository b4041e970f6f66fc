"""The order of elements by comparisons of all pairs: nothing is sorted and nothing branches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from msc.dialects import ms
from msc.dialects.element_types import element_type, is_float
from msc.graph.emitter import Emitter
from msc.graph.expand.expanders.registry import expander
from msc.poly.compute import identity

MINIMUM_CHUNK, MAXIMUM_CHUNK = 1 << 8, 1 << 13
"""Of a long axis: every pair of elements of a chunk is compared."""


@expander(ms.ArgsortOp)
def _argsort(op: ms.ArgsortOp, emit: Emitter) -> SSAValue:
    shape = emit.shape(op.result)
    axis = op.int_("axis") % len(shape)
    if 0 in shape or emit.shape(op.x)[axis] == 1:
        return emit(ms.IotaOp, shape=list(shape), axis=axis, dtype=element_type("i64"))
    order = _Order(axis, op.flag("descending"), emit)
    return order.first(_keys(op.x, emit), shape[axis])


def _keys(x: SSAValue, emit: Emitter) -> SSAValue:
    """The elements as they are compared."""
    if is_float(emit.dtype(x)):
        return emit(ms.SelectOp, emit(ms.IsNanOp, x), float("inf"), x)
    return emit.cast(x, "i8") if emit.dtype(x) == "i1" else x


@dataclass(frozen=True)
class _Order:
    axis: int
    descending: bool
    emit: Emitter

    def first(self, x: SSAValue, count: int) -> SSAValue:
        """Where the `count` first elements are, in order.

        A long axis is cut into chunks; the first of each meet again, so that the work is linear in the axis.
        """
        emit, shape, axis = self.emit, self.emit.shape(x), self.axis
        chunk = min(max(4 * count, MINIMUM_CHUNK), MAXIMUM_CHUNK)
        if shape[axis] <= chunk or 2 * count > chunk:
            return self._by_ranks(x, axis, count)
        parts = -(-shape[axis] // chunk)
        long = self._lengthened(x, parts * chunk)
        before, after = shape[:axis], shape[axis + 1 :]
        inside = self._by_ranks(emit.reshape(long, (*before, parts, chunk, *after)), axis + 1, count)
        start = emit(ms.MulOp, self._numbers(parts, axis, len(shape) + 1), chunk)
        places = emit.reshape(emit(ms.AddOp, inside, start), (*before, parts * count, *after))
        finalists = emit(ms.GatherElementsOp, long, places, axis=axis)
        return emit(ms.GatherElementsOp, places, self.first(finalists, count), axis=axis)

    def _lengthened(self, x: SSAValue, size: int) -> SSAValue:
        """The axis with elements at its end that come after all others."""
        emit, shape, dtype = self.emit, self.emit.shape(x), self.emit.dtype(x)
        missing = [size - n if a == self.axis else n for a, n in enumerate(shape)]
        if missing[self.axis] == 0:
            return x
        last = emit.scalar(identity("max" if self.descending else "min", dtype), dtype)
        return emit(ms.ConcatOp, x, emit(ms.BroadcastToOp, last, shape=missing), axis=self.axis)

    def _by_ranks(self, x: SSAValue, axis: int, count: int) -> SSAValue:
        """By how many elements come before each: that is its place in the order."""
        emit, shape = self.emit, self.emit.shape(x)
        rank, size = self._ranks(x, axis), shape[axis]
        hits = emit(ms.EqualOp, self._inserted(rank, axis), self._numbers(count, axis, len(shape) + 1))
        chosen = emit(ms.SelectOp, hits, self._numbers(size, axis + 1, len(shape) + 1), 0)
        return emit(ms.ReduceSumOp, chosen, axis=[axis + 1])

    def _ranks(self, x: SSAValue, axis: int) -> SSAValue:
        emit, shape = self.emit, self.emit.shape(x)
        size, rank = shape[axis], len(shape) + 1
        mine, other = self._inserted(x, axis + 1), self._inserted(x, axis)
        better = emit(ms.GreaterOp if self.descending else ms.LessOp, other, mine)
        earlier = emit(ms.LessOp, self._numbers(size, axis + 1, rank), self._numbers(size, axis, rank))
        before = emit(ms.LogicalOrOp, better, emit(ms.LogicalAndOp, emit(ms.EqualOp, other, mine), earlier))
        return emit(ms.ReduceSumOp, emit.cast(before, "i64"), axis=[axis + 1])

    def _inserted(self, x: SSAValue, axis: int) -> SSAValue:
        """A tensor with one more axis, of size 1."""
        shape = self.emit.shape(x)
        return self.emit.reshape(x, (*shape[:axis], 1, *shape[axis:]))

    def _numbers(self, count: int, axis: int, rank: int) -> SSAValue:
        """0, 1, 2, ... along one axis of `rank`."""
        shape: Sequence[int] = [count if a == axis else 1 for a in range(rank)]
        return self.emit(ms.IotaOp, shape=list(shape), axis=axis, dtype=element_type("i64"))
