"""The orders of the loops over register tiles that predictions compare: which operand stays in a cache.

A product reads one operand by the columns of its tiles, which are vectors, and one by their rows. With columns
outermost a panel of columns stays in L1 while all rows are streamed, once for each panel; these are many passes
over a large image, each of which reads a few elements of every line. With columns innermost each line of the
image is read once, and all panels are read repeatedly, from L2 if they stay there. If a panel also depends on
other loops, those over rows are inside them. All other loops are in the order of their strides.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from msc.cost.access import strides
from msc.cost.prediction import traffic
from msc.poly.model import KernelModel
from msc.poly.schedule_tree.nodes import Axis
from msc.targets.machine import Machine


def tile_orders(
    model: KernelModel, statement: int, columns: Axis, others: Sequence[Axis], rows: Collection[str], target: Machine
) -> Sequence[Sequence[Axis]]:
    """The orders of a kernel's band around the reduction `statement`: the loop over columns outermost, or innermost.

    `others` are ordered by their strides, the largest first; `rows` are those that have tiles. If L1 holds all data,
    there is one order. Where memory is scarce it goes through an image once, which the result may follow in memory.
    """
    ordered = _ordered(model, statement, columns, others, rows)
    outermost, innermost = (columns, *ordered), (*ordered, columns)
    if target.is_bare:
        return (sorted(innermost, key=lambda axis: -_distance_in_results(model, axis)),)
    differ = any(axis.extent > 1 for axis in others) and traffic(model) > target.caches[0].bytes
    return (outermost, innermost) if differ else (outermost,)


def _distance_in_results(model: KernelModel, axis: Axis) -> int:
    """How far apart an axis writes the elements of an output."""
    written = {s: d for s, d in axis.dims.items() if model.arrays[model.statements[s].target].kind == "output"}
    return max((abs(strides(model, model.statements[s], d)[0]) for s, d in written.items()), default=0)


def _ordered(
    model: KernelModel, statement: int, columns: Axis, others: Sequence[Axis], rows: Collection[str]
) -> Sequence[Axis]:
    """The loops, those over rows last if an operand read by the columns changes with others."""
    column = columns.dims[statement]
    across = {axis.dims[statement] for axis in others if axis.name in rows}
    panels = [dims for dims in _moves(model, statement).values() if column in dims and not dims & across]
    beside = {axis.dims[statement] for axis in others if axis.name not in rows and axis.extent > 1}
    changes = any(dims & beside for dims in panels)
    return sorted(others, key=lambda axis: axis.name in rows) if changes else others


def _moves(model: KernelModel, number: int) -> dict[int, set[int]]:
    """For each read of a statement, by its place among the accesses, the dimensions that it moves along."""
    statement = model.statements[number]
    along = [strides(model, statement, dim) for dim in range(len(statement.extents))]
    reads = range(1, len(statement.accesses()))
    return {k: {dim for dim, per_access in enumerate(along) if per_access[k]} for k in reads}
