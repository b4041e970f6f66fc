"""Writing at computed places: a loop over the rows, which are added one after the other, in place."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.ir import SSAValue

from msc.dialects import ms
from msc.dialects.element_types import NARROW_FLOATS
from msc.graph.emitter import Emitter
from msc.graph.expand.expanders.registry import expander
from msc.graph.graph_loops import index, loop_over


@expander(ms.ScatterAddOp)
def _scatter_add(op: ms.ScatterAddOp, emit: Emitter) -> SSAValue:
    count, entry = prod(emit.shape(op.indices)), emit.shape(op.x)[1:]
    if count == 0:
        return op.x
    dtype = emit.dtype(op.x)
    table, updates = op.x, op.updates
    if dtype in NARROW_FLOATS:  # summed in f32 and rounded once
        table, updates = (emit.cast(value, "f32") for value in (table, updates))
    places = emit.reshape(op.indices, [count])
    rows = emit.reshape(updates, [count, *entry])

    def add(inner: Emitter, number: SSAValue, carried: Sequence[SSAValue]) -> list[SSAValue]:
        place = inner(ms.ExtractSliceOp, places, number)
        row = inner(ms.AddOp, inner(ms.ExtractSliceOp, carried[0], place), inner(ms.ExtractSliceOp, rows, number))
        return [inner(ms.InsertSliceOp, carried[0], place, row)]

    summed = loop_over(emit, (index(emit, 0), index(emit, count)), [table], add)[0]
    return emit.cast(summed, dtype)
