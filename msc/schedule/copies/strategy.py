"""The schedules of kernels that only move data: boxes through UB, tile by tile."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from msc.poly.model import KernelModel
from msc.poly.schedule_tree.nodes import Tree
from msc.poly.schedule_tree.text import to_lines
from msc.schedule.copies.boxes import Box
from msc.schedule.copies.plans import CopyPlan, cores_of, ranked, room_of
from msc.schedule.copies.tiles import work_of
from msc.schedule.copies.trees import plans_in, tree_of, tree_with
from msc.schedule.forms import Unlike
from msc.targets.davinci import DavinciTarget

TRIES = 24
"""Plans that are tried, the best predicted ones."""


@dataclass(frozen=True)
class Copies:
    """A kernel that only moves boxes, tile by tile."""

    model: KernelModel
    boxes: Sequence[Box]
    target: DavinciTarget

    def trees(self) -> Iterator[Tree]:
        """Trees of the plans of the fewest predicted cycles."""
        return (tree_of(self.model, plans) for plans in ranked(self.boxes, self.target, TRIES))

    def plans_in(self, tree: Tree) -> Sequence[CopyPlan]:
        """The plans that a tree says. Raises Unlike for a tree that is none of moves, or whose tiles have no room."""
        plans = plans_in(tree, self.model, self.boxes)
        if plans is None:
            raise Unlike("each statement has loops of its own, over tiles that one instruction moves")
        meant = tree_with(self.model, plans, tree)
        if meant.body != tree.body:
            lines, nearest = to_lines(tree), to_lines(meant)
            line = next(k for k, (a, b) in enumerate(zip_longest(lines, nearest), 1) if a != b)
            raise Unlike(f"line {line}: moves of tiles are no such loops", nearest)
        room = room_of(self.boxes, self.target)
        for plan in plans:
            if plan.tile.ub_bytes > room:
                statement = f"S{plan.tile.box.statement}"
                line = next(k for k, text in enumerate(to_lines(tree), 1) if statement in text.split())
                why = f"a tile takes {plan.tile.ub_bytes} bytes of UB, which has {room} for each statement"
                raise Unlike(f"line {line}: {why}")
        return plans

    def shares(self, plans: Sequence[CopyPlan]) -> list[int]:
        """The tiles of a core, of each box."""
        is_dealt = any(plan.is_dealt for plan in plans)
        cores = cores_of([plan.tile for plan in plans], self.target) if is_dealt else 1
        return [plan.share(cores, self.target) for plan in plans]

    def neighbours(self) -> Iterator[Tree]:
        """Trees of other tiles."""
        return self.trees()

    def reasons(self, tree: Tree) -> Sequence[str]:
        """How many cores move which tiles, and what each pipe of the busiest one has to do by prediction."""
        plans, target = self.plans_in(tree), self.target
        shares = self.shares(plans)
        cores = used_cores(plans, shares)
        forms = dict.fromkeys(f"{plan.tile.rows} x {plan.tile.lanes} {plan.tile.form}" for plan in plans)
        works = [(share, work_of(plan.tile, target, cores)) for plan, share in zip(plans, shares, strict=True)]
        mte2 = sum(share * work.mte2 for share, work in works)
        vector = sum(share * work.vector for share, work in works)
        mte3 = sum(share * work.mte3 for share, work in works)
        return [
            f"{max(plan.tile.tasks for plan in plans)} tiles on {cores} of {target.cores.vector} vector cores",
            f"tiles: {', '.join(forms)}",
            f"predicted cycles of the busiest core: {mte2:.0f} on MTE2, {vector:.0f} on V, {mte3:.0f} on MTE3",
        ]


def used_cores(plans: Sequence[CopyPlan], shares: Sequence[int]) -> int:
    """How many cores have tiles."""
    return max(-(-plan.tile.tasks // share) for plan, share in zip(plans, shares, strict=True))
