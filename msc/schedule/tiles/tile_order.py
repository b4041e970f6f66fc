"""The order of the loops over register tiles: which operand stays in a cache, and which is streamed.

A product reads one operand by the columns of its tiles, which are vectors, and one by their rows. With columns
outermost a panel of columns stays in L1 while all rows are streamed, once for each panel; these are many passes
over a large image, each of which reads a few elements of every line. With columns innermost each line of the
image is read once, and all panels are read repeatedly, from L2 if they stay there. If a panel also depends on
other loops, those over rows are inside them. All other loops are in the order of their strides.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import prod

from msc.cost.access import strides
from msc.cost.prediction import traffic
from msc.dialects.element_types import BYTES
from msc.poly.model import KernelModel
from msc.poly.schedule_tree.nodes import Axis
from msc.targets.machine import Machine


def in_order(
    model: KernelModel,
    statement: int,
    columns: Axis,
    others: Sequence[Axis],
    rows: Collection[str],
    target: Machine,
) -> tuple[Axis, ...]:
    """The band of a kernel around the reduction `statement`: the loop over columns, and the others.

    `others` stand by how far they stride, the furthest first; `rows` are those that have tiles.
    """
    rows_last = sorted(others, key=lambda axis: axis.name in rows)
    if others and traffic(model) > target.l2 and _panels_stay(model, statement, columns, rows_last, target):
        return (*_ordered(model, statement, columns, others, rows), columns)
    return (columns, *_ordered(model, statement, columns, others, rows))


def _ordered(
    model: KernelModel, statement: int, columns: Axis, others: Sequence[Axis], rows: Collection[str]
) -> Sequence[Axis]:
    """The loops with those over rows last, if what the columns read changes with others."""
    column = columns.dims[statement]
    across = {axis.dims[statement] for axis in others if axis.name in rows}
    panels = [dims for dims in _moves(model, statement).values() if column in dims and not dims & across]
    beside = {axis.dims[statement] for axis in others if axis.name not in rows and axis.extent > 1}
    changes = any(dims & beside for dims in panels)
    return sorted(others, key=lambda axis: axis.name in rows) if changes else others


def _panels_stay(model: KernelModel, statement: int, columns: Axis, others: Sequence[Axis], target: Machine) -> bool:
    """Whether all panels are few enough to be read again for all rows, rather than all rows for each panel."""
    outer = [m.dims[statement] for m in others]
    column, row = columns.dims[statement], outer[-1]
    along = _moves(model, statement)
    read_by_columns = [k for k, dims in along.items() if column in dims and row not in dims]
    read_by_rows = [k for k, dims in along.items() if row in dims and column not in dims]
    common = {dim for k in read_by_columns for dim in outer if dim in along[k]}
    panels = _bytes(model, statement, [(k, along[k] - common) for k in read_by_columns])
    rows = _bytes(model, statement, [(k, along[k] - common) for k in read_by_rows])
    return panels <= target.l2 // 8 or panels <= min(rows, target.l2 // 2)


def _moves(model: KernelModel, number: int) -> dict[int, set[int]]:
    """For each read of a statement, by its place among the accesses, the dimensions that it moves along."""
    statement = model.statements[number]
    along = [strides(model, statement, dim) for dim in range(len(statement.extents))]
    reads = range(1, len(statement.accesses()))
    return {k: {dim for dim, per_access in enumerate(along) if per_access[k]} for k in reads}


def _bytes(model: KernelModel, number: int, reads: Sequence[tuple[int, set[int]]]) -> int:
    """What reads touch as the given dimensions go round."""
    statement = model.statements[number]
    arrays = [array for array, _ in statement.accesses()]
    return sum(prod(statement.extents[d] for d in dims) * BYTES[model.arrays[arrays[k]].dtype] for k, dims in reads)
