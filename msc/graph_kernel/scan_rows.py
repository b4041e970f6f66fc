"""Pass `scan-rows`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from msc.analysis.properties import REWRITES_GRAPH
from msc.analysis.target import target_of
from msc.dialects import ms
from msc.dialects.element_types import BYTES, NARROW_FLOATS
from msc.dialects.open_sizes import has_open_sizes
from msc.graph.emitter import Emitter
from msc.graph.graph_loops import empty, index, loop_over, put_in_place, stacked


@dataclass(frozen=True)
class ScanRows(ModulePass):
    """Cumulate sums by loops that add one row after the other to the sums so far.

    Takes: a graph. Gives: in place of `ms.cumsum` from the beginning of an axis on a loop along that axis, inside of
    one over what is before it; what is behind it is a row of a vector or more. If there is less behind it, the axis is
    brought to the front, where all others are the row. Each element is read and written once. Left alone: what
    has no such rows, sums from the end, and all where calls decide sizes. Keeps: the meaning; sums are
    rounded as the interpreter rounds them.
    """

    name = "scan-rows"
    contract = REWRITES_GRAPH

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if has_open_sizes(op):
            return
        for found in [o for o in op.walk() if isinstance(o, ms.CumsumOp)]:
            emit = Emitter(found)
            shape, axis = emit.shape(found.x), found.int_("axis") % len(found.shape(0))
            lanes = target_of(found).machine.lanes(BYTES[emit.dtype(found.x)])
            if found.flag("reverse") or shape[axis] < 2 or prod(shape) < lanes * shape[axis]:
                continue
            scanned = _scanned if prod(shape[axis + 1 :]) >= lanes else _scanned_in_front
            put_in_place(emit, scanned(found.x, axis, emit), "cumsum")


def _scanned_in_front(x: SSAValue, axis: int, emit: Emitter) -> SSAValue:
    """With the axis as the first one."""
    perm = [axis, *(a for a in range(len(emit.shape(x))) if a != axis)]
    y = _scanned(emit(ms.TransposeOp, x, perm=perm), 0, emit)
    return emit(ms.TransposeOp, y, perm=[perm.index(a) for a in range(len(perm))])


def _scanned(x: SSAValue, axis: int, emit: Emitter) -> SSAValue:
    """Narrow floats are summed in f32 and rounded once."""
    shape, dtype = emit.shape(x), emit.dtype(x)
    before, size, row = prod(shape[:axis]), shape[axis], prod(shape[axis + 1 :])
    wide = "f32" if dtype in NARROW_FLOATS else dtype
    x = emit.cast(x, wide)
    zero = emit(ms.BroadcastToOp, emit.scalar(0, wide), shape=[row])
    if before == 1:
        y = _rows(emit.reshape(x, (size, row)), zero, emit)
    else:
        blocks = emit.reshape(x, (before, size, row))

        def block(inner: Emitter, number: SSAValue, carried: Sequence[SSAValue]) -> list[SSAValue]:
            rows = _rows(inner(ms.ExtractSliceOp, blocks, number), zero, inner)
            return [inner(ms.InsertSliceOp, carried[0], number, rows)]

        y = stacked(emit, (before, size, row), wide, block)
    y = emit.reshape(y, shape)
    return emit.cast(y, dtype)


def _rows(x: SSAValue, zero: SSAValue, emit: Emitter) -> SSAValue:
    """The sums of the rows up to each one, without itself if the operation says so."""
    assert isinstance(emit.op, ms.CumsumOp)
    exclusive, shape = emit.op.flag("exclusive"), emit.shape(x)
    start = [empty(emit, shape, emit.dtype(x)), zero]

    def step(inner: Emitter, number: SSAValue, carried: Sequence[SSAValue]) -> list[SSAValue]:
        sums, so_far = carried
        through = inner(ms.AddOp, so_far, inner(ms.ExtractSliceOp, x, number))
        return [inner(ms.InsertSliceOp, sums, number, so_far if exclusive else through), through]

    return loop_over(emit, (index(emit, 0), index(emit, shape[0])), start, step)[0]
