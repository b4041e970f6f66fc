"""Means, positions of extremes and running sums."""

from __future__ import annotations

import math
from dataclasses import dataclass

from xdsl.ir import SSAValue

from msc.dialects import ms
from msc.dialects.element_types import BYTES, element_type, is_float
from msc.dialects.ms.reductions import ArgExtremeOp, reduced_axes
from msc.dialects.open_sizes import has_open_sizes
from msc.graph.emitter import Emitter
from msc.graph.expand.expanders.registry import expander


@expander(ms.ReduceMeanOp)
def _reduce_mean(op: ms.ReduceMeanOp, emit: Emitter) -> SSAValue:
    shape = emit.shape(op.x)
    total = emit(ms.ReduceSumOp, op.x, axis=list(op.ints("axis")), keep_dims=op.flag("keep_dims"))
    return emit(ms.DivOp, total, float(math.prod(shape[axis] for axis in reduced_axes(op))))


_MOST_NARROW = (1 << 31) - 1
"""Elements of an axis whose number i32 still holds."""


@expander(ms.ArgmaxOp, ms.ArgminOp)
def _arg_extreme(op: ArgExtremeOp, emit: Emitter) -> SSAValue:
    """Places are counted along the axis; in 32 bits, of which vectors hold more, unless elements have 64 themselves."""
    axis, shape = op.int_("axis") % len(op.shape(0)), list(emit.shape(op.x))
    narrow = BYTES[emit.dtype(op.x)] < BYTES["i64"] and shape[axis] <= _MOST_NARROW
    places = emit(ms.IotaOp, shape=shape, axis=axis, dtype=element_type("i32" if narrow else "i64"))
    return emit.cast(place_of_extreme(op, places, emit), "i64")


def place_of_extreme(op: ArgExtremeOp, places: SSAValue, emit: Emitter) -> SSAValue:
    """The smallest (with `select_last` the largest) of the places whose element is the extreme, or is NaN."""
    shape, axis = emit.shape(op.x), op.int_("axis") % len(op.shape(0))
    last = op.flag("select_last")
    chosen = emit(ms.SelectOp, _is_extreme(op, axis, emit), places, -1 if last else shape[axis])
    pick = ms.ReduceMaxOp if last else ms.ReduceMinOp
    return emit(pick, chosen, axis=[axis], keep_dims=op.flag("keep_dims"))


def _is_extreme(op: ArgExtremeOp, axis: int, emit: Emitter) -> SSAValue:
    reduce = ms.ReduceMaxOp if isinstance(op, ms.ArgmaxOp) else ms.ReduceMinOp
    hit = emit(ms.EqualOp, op.x, emit(reduce, op.x, axis=[axis], keep_dims=True))
    return emit(ms.LogicalOrOp, hit, emit(ms.IsNanOp, op.x)) if is_float(emit.dtype(op.x)) else hit


MOST_SUMMED = 2048
"""Elements of an axis along which a cumulated sum of an open size is computed: the work is their square."""

SUMMED_AT_ONCE = 8
"""Elements of a block of a cumulated sum, each of which is a sum of its own: so many additions an element, and a pass
over an eighth of the elements for what is before each block.
"""


@expander(ms.CumsumOp)
def _cumsum(op: ms.CumsumOp, emit: Emitter) -> SSAValue:
    axis = op.int_("axis") % len(op.shape(0))
    size, sums = emit.shape(op.x)[axis], _CumulatedSums(axis, op.flag("reverse"), emit)
    if size == 0:
        return op.x
    if not has_open_sizes(op):
        return sums.by_blocks(op.x, exclusive=op.flag("exclusive"))
    if size <= MOST_SUMMED:
        return sums.of_each(op.x, axis, exclusive=op.flag("exclusive"))
    return sums.by_doubling(op.x, exclusive=op.flag("exclusive"))


@dataclass(frozen=True)
class _CumulatedSums:
    """Sums of the elements up to each one along an axis, from the end if `reverse`."""

    axis: int
    reverse: bool
    emit: Emitter

    def by_blocks(self, x: SSAValue, *, exclusive: bool) -> SSAValue:
        """Of blocks of neighbours, and of the sums of the blocks before, which are cumulated in the same way."""
        emit, shape, axis = self.emit, self.emit.shape(x), self.axis
        if shape[axis] <= SUMMED_AT_ONCE:
            return self.of_each(x, axis, exclusive=exclusive)
        missing = -shape[axis] % SUMMED_AT_ONCE
        if missing:
            behind = [missing if k == axis else 0 for k in range(len(shape))]
            x = emit(ms.PadOp, x, pad=[*(0 for _ in shape), *behind])
        blocks = (shape[axis] + missing) // SUMMED_AT_ONCE
        parts = emit.reshape(x, (*shape[:axis], blocks, SUMMED_AT_ONCE, *shape[axis + 1 :]))
        inside = self.of_each(parts, axis + 1, exclusive=exclusive)
        before = self.by_blocks(emit(ms.ReduceSumOp, parts, axis=[axis + 1]), exclusive=True)
        y = emit(ms.AddOp, inside, emit.reshape(before, (*shape[:axis], blocks, 1, *shape[axis + 1 :])))
        y = emit.reshape(y, emit.shape(x))
        return emit(ms.SliceOp, y, begin=[0] * len(shape), end=list(shape)) if missing else y

    def of_each(self, x: SSAValue, axis: int, *, exclusive: bool) -> SSAValue:
        """Each element as a sum of its own, so that what is computed does not depend on how many there are."""
        emit, shape = self.emit, self.emit.shape(x)
        size, behind = shape[axis], len(shape) - axis - 1
        row = emit(ms.IotaOp, shape=[size, 1], axis=0, dtype=element_type("i32"))
        column = emit(ms.IotaOp, shape=[1, size], axis=1, dtype=element_type("i32"))
        first, last = (row, column) if self.reverse else (column, row)
        mask = emit(ms.LessOp if exclusive else ms.LessEqualOp, first, last)
        terms = emit.reshape(x, (*shape[:axis], 1, *shape[axis:]))
        kept = emit(ms.SelectOp, emit.reshape(mask, (size, size, *[1] * behind)), terms, 0.0)
        return emit(ms.ReduceSumOp, kept, axis=[axis + 1])

    def by_doubling(self, x: SSAValue, *, exclusive: bool) -> SSAValue:
        """After step k each element is the sum of the 2^k up to it (Hillis and Steele, 1986)."""
        x = self.emit(ms.ReverseOp, x, axis=[self.axis]) if self.reverse else x
        y = self._moved(x, 1) if exclusive else x
        step = 1
        while step < self.emit.shape(x)[self.axis]:
            y = self.emit(ms.AddOp, y, self._moved(y, step))
            step *= 2
        return self.emit(ms.ReverseOp, y, axis=[self.axis]) if self.reverse else y

    def _moved(self, x: SSAValue, by: int) -> SSAValue:
        """The tensor moved towards the end of the axis, with zeros before."""
        shape = list(self.emit.shape(x))
        end = [n - by if i == self.axis else n for i, n in enumerate(shape)]
        kept = self.emit(ms.SliceOp, x, begin=[0] * len(shape), end=end)
        before = [by if i == self.axis else 0 for i in range(len(shape))]
        return self.emit(ms.PadOp, kept, pad=[*before, *(0 for _ in shape)])
