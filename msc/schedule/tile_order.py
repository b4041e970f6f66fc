"""The order of the loops over register tiles: which operand stays in a cache, and which passes by.

An operand that only the tiles of the vector dimension move through, such as weights, is cut into panels. With those
tiles outermost a panel stays in the first cache while everything else passes by, once for each panel. That is
many passes over a large image, each of which takes a few elements of every line: where all panels together stay in
the second cache, its tiles go innermost, and each line comes once.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from msc.dialects.element_types import BYTES
from msc.poly.model import KernelModel
from msc.poly.plan import Member
from msc.schedule.access import strides
from msc.schedule.prediction import traffic
from msc.targets.cpu import CpuTarget


def in_order(
    model: KernelModel, statement: int, columns: Member, others: Sequence[Member], target: CpuTarget
) -> tuple[Member, ...]:
    """The band of a kernel around the reduction `statement`: the vector dimension's tiles, and the other loops."""
    if others and traffic(model) > target.l2 >= 2 * _panel_bytes(model, statement, columns, others):
        return (*others, columns)
    return (columns, *others)


def _panel_bytes(model: KernelModel, number: int, columns: Member, others: Sequence[Member]) -> int:
    """What all tiles of the vector dimension read and the innermost other loop reads again, outside of it once."""
    statement, total = model.statements[number], 0
    along = [strides(model, statement, dim) for dim in range(len(statement.extents))]
    for k, (array, _) in enumerate(statement.accesses()):
        if k and along[columns.dims[number]][k] and not along[others[-1].dims[number]][k]:
            outside = {m.dims[number] for m in others}
            inside = (n for dim, n in enumerate(statement.extents) if along[dim][k] and dim not in outside)
            total += prod(inside) * BYTES[model.arrays[array].dtype]
    return total
