"""Writing at computed places: a loop over the rows, which are added one after the other, in place."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.ir import SSAValue

from msc.dialects.ms.arithmetic import AddOp
from msc.dialects.ms.entries import EntryOp, SetEntryOp
from msc.dialects.ms.indexing import ScatterAddOp
from msc.graph.emitter import Emitter
from msc.graph.expand.expanders.registry import expander
from msc.graph.graph_loops import index, loop_over


@expander(ScatterAddOp)
def _scatter_add(op: ScatterAddOp, emit: Emitter) -> SSAValue:
    count, entry = prod(emit.shape(op.indices)), emit.shape(op.x)[1:]
    if count == 0:
        return op.x
    places = emit.reshape(op.indices, [count])
    rows = emit.reshape(op.updates, [count, *entry])

    def add(inner: Emitter, number: SSAValue, carried: Sequence[SSAValue]) -> list[SSAValue]:
        place = inner(EntryOp, places, number)
        row = inner(AddOp, inner(EntryOp, carried[0], place), inner(EntryOp, rows, number))
        return [inner(SetEntryOp, carried[0], place, row)]

    return loop_over(emit, (index(emit, 0), index(emit, count)), [op.x], add)[0]
