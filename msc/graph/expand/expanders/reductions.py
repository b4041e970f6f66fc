"""Means, positions of extremes and running sums."""

from __future__ import annotations

import math

from xdsl.ir import SSAValue

from msc.dialects.element_types import element_type, is_float
from msc.dialects.ms.arithmetic import AddOp, DivOp
from msc.dialects.ms.comparison import EqualOp, LessEqualOp, LessOp, LogicalOrOp
from msc.dialects.ms.elementwise import SelectOp
from msc.dialects.ms.indexing import IotaOp
from msc.dialects.ms.movement import ReverseOp, SliceOp
from msc.dialects.ms.padding import PadOp
from msc.dialects.ms.reductions import (
    ArgExtremeOp,
    ArgmaxOp,
    ArgminOp,
    CumsumOp,
    ReduceMaxOp,
    ReduceMeanOp,
    ReduceMinOp,
    ReduceSumOp,
    reduced_axes,
)
from msc.dialects.ms.unary import IsNanOp
from msc.dialects.open_sizes import has_open_sizes
from msc.graph.emitter import Emitter
from msc.graph.expand.expanders.registry import expander


@expander(ReduceMeanOp)
def _reduce_mean(op: ReduceMeanOp, emit: Emitter) -> SSAValue:
    shape = emit.shape(op.x)
    total = emit(ReduceSumOp, op.x, axis=list(op.ints("axis")), keep_dims=op.flag("keep_dims"))
    return emit(DivOp, total, float(math.prod(shape[axis] for axis in reduced_axes(op))))


@expander(ArgmaxOp, ArgminOp)
def _arg_extreme(op: ArgExtremeOp, emit: Emitter) -> SSAValue:
    """Places are counted along the axis."""
    axis = op.int_("axis") % len(op.shape(0))
    places = emit(IotaOp, shape=list(emit.shape(op.x)), axis=axis, dtype=element_type("i64"))
    return place_of_extreme(op, places, emit)


def place_of_extreme(op: ArgExtremeOp, places: SSAValue, emit: Emitter) -> SSAValue:
    """The smallest (with `select_last` the largest) of the places whose element is the extreme, or is NaN."""
    shape, axis = emit.shape(op.x), op.int_("axis") % len(op.shape(0))
    last = op.flag("select_last")
    chosen = emit(SelectOp, _is_extreme(op, axis, emit), places, -1 if last else shape[axis])
    pick = ReduceMaxOp if last else ReduceMinOp
    return emit(pick, chosen, axis=[axis], keep_dims=op.flag("keep_dims"))


def _is_extreme(op: ArgExtremeOp, axis: int, emit: Emitter) -> SSAValue:
    reduce = ReduceMaxOp if isinstance(op, ArgmaxOp) else ReduceMinOp
    hit = emit(EqualOp, op.x, emit(reduce, op.x, axis=[axis], keep_dims=True))
    return emit(LogicalOrOp, hit, emit(IsNanOp, op.x)) if is_float(emit.dtype(op.x)) else hit


MOST_SUMMED = 2048
"""Elements of an axis along which a cumulated sum of an open size is computed: the work is their square."""


@expander(CumsumOp)
def _cumsum(op: CumsumOp, emit: Emitter) -> SSAValue:
    """By doubling (Hillis and Steele, 1986): after step k each element is the sum of the 2^k up to it."""
    axis = op.int_("axis") % len(op.shape(0))
    size = emit.shape(op.x)[axis]
    if has_open_sizes(op) and 0 < size <= MOST_SUMMED:
        return _sums(op, axis, emit)
    x = emit(ReverseOp, op.x, axis=[axis]) if op.flag("reverse") else op.x
    y = _moved(x, axis, 1, emit) if op.flag("exclusive") and size > 0 else x
    step = 1
    while step < size:
        y = emit(AddOp, y, _moved(y, axis, step, emit))
        step *= 2
    return emit(ReverseOp, y, axis=[axis]) if op.flag("reverse") else y


def _sums(op: CumsumOp, axis: int, emit: Emitter) -> SSAValue:
    """Each element as a sum of its own, so that what is computed does not depend on how many there are."""
    shape = emit.shape(op.x)
    size, behind = shape[axis], len(shape) - axis - 1
    row = emit(IotaOp, shape=[size, 1], axis=0, dtype=element_type("i64"))
    column = emit(IotaOp, shape=[1, size], axis=1, dtype=element_type("i64"))
    first, last = (row, column) if op.flag("reverse") else (column, row)
    mask = emit(LessOp if op.flag("exclusive") else LessEqualOp, first, last)
    terms = emit.reshape(op.x, (*shape[:axis], 1, *shape[axis:]))
    kept = emit(SelectOp, emit.reshape(mask, (size, size, *[1] * behind)), terms, 0.0)
    return emit(ReduceSumOp, kept, axis=[axis + 1])


def _moved(x: SSAValue, axis: int, by: int, emit: Emitter) -> SSAValue:
    """The tensor moved towards the end of an axis, with zeros before."""
    shape = list(emit.shape(x))
    end = [n - by if i == axis else n for i, n in enumerate(shape)]
    kept = emit(SliceOp, x, begin=[0] * len(shape), end=end)
    before = [by if i == axis else 0 for i in range(len(shape))]
    return emit(PadOp, kept, pad=[*before, *(0 for _ in shape)])
