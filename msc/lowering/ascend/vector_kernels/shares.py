"""How cores share tasks. Each core starts later than the one before it, and takes fewer, so that all end together."""

from __future__ import annotations

from msc.lowering.ascend.builder import Expr, KernelBuilder, expression
from msc.schedule.vector_unit.cost import StaggeredStart

_PARTS = 1024
"""In such parts of what they share cores know how much later one starts."""


def share_of(b: KernelBuilder, tasks: int, cores: int, launch: StaggeredStart) -> tuple[Expr, Expr]:
    """The first task of a core, or part of one, and how many it has, for an even number of cores.

    The first core and the last one share as many as any two others that start as far from the middle. So shares begin
    where affine expressions say.
    """
    pairs, block = cores // 2, b.block_index()
    pair = expression(b.minimum(block, block * -1 + (cores - 1), name="pair"))
    begin, end = pair * tasks // pairs, (pair * tasks + tasks) // pairs
    parts = round(launch.later / launch.cycles * launch.grain * _PARTS)
    lead = pair * (-2 * parts) + (cores - 1) * parts
    even = ((begin + end) * _PARTS + lead + _PARTS) // (2 * _PARTS)
    middle = expression(b.minimum(even, end, name="middle"))
    is_later = block // pairs * tasks
    first = expression(b.minimum(begin + is_later, middle, name="first"))
    stop = expression(b.minimum(middle + is_later, end, name="stop"))
    return first, stop + first * -1
