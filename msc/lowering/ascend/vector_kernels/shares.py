"""How cores share tasks. Each core starts later than the one before it, and takes fewer, so that all end together."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, sqrt

from msc.lowering.ascend.builder import Expr, KernelBuilder, expression

_PARTS = 1024
"""In such parts of what cores share they know how much later a core starts."""


@dataclass(frozen=True)
class StaggeredStart:
    """Cores start `later` cycles one after the other, and have tasks of so many cycles.

    They share whole tasks, or each `grain` parts of one.
    """

    later: float
    cycles: float
    grain: int = 1

    def end(self, tasks: int, cores: int) -> float:
        """When the last task ends, if shares differ as starts do, but for half of what cores share."""
        last = (cores - 1) * self.later + self.cycles
        if cores in (1, tasks):
            return last + (tasks - cores) * self.cycles
        return max(last, tasks * self.cycles / cores + (cores - 1) * self.later / 2 + self.cycles / (2 * self.grain))

    def best_cores(self, tasks: int, most: int) -> int:
        """The number of cores that end first: one, one for each task, or an even number."""
        wanted = ceil(sqrt(2 * tasks * self.cycles / self.later)) if self.later else most
        options = {1, min(tasks, most), *(2 * (min(wanted, most, tasks) // 2 + k) for k in (-1, 0, 1))}
        possible = [c for c in options if 0 < c <= min(tasks, most) and (c % 2 == 0 or c in (1, tasks))]
        return min(possible, key=lambda cores: (self.end(tasks, cores), cores))

    @property
    def parts(self) -> int:
        """How much of what cores share one has done when the next one starts."""
        return round(self.later / self.cycles * self.grain * _PARTS)


def share_of(b: KernelBuilder, tasks: int, cores: int, launch: StaggeredStart) -> tuple[Expr, Expr]:
    """The first task of a core, or part of one, and how many it has, for an even number of cores.

    The first core and the last one share as many as any two others that start as far from the middle. So shares begin
    where affine expressions say.
    """
    pairs, block = cores // 2, b.block_index()
    pair = expression(b.minimum(block, block * -1 + (cores - 1), name="pair"))
    begin, end = pair * tasks // pairs, (pair * tasks + tasks) // pairs
    lead = pair * (-2 * launch.parts) + (cores - 1) * launch.parts
    even = ((begin + end) * _PARTS + lead + _PARTS) // (2 * _PARTS)
    middle = expression(b.minimum(even, end, name="middle"))
    is_later = block // pairs * tasks
    first = expression(b.minimum(begin + is_later, middle, name="first"))
    stop = expression(b.minimum(middle + is_later, end, name="stop"))
    return first, stop + first * -1
