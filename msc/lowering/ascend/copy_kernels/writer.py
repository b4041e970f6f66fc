"""The writer of kernels that only move data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from msc.dialects.davinci import DavinciKernelOp
from msc.lowering.ascend.builder import Expr, KernelBuilder, expression
from msc.lowering.ascend.copy_kernels.boxes import Box, boxes_of, index_arrays
from msc.lowering.ascend.copy_kernels.moves import Mover
from msc.lowering.ascend.copy_kernels.plans import CopyPlan, cores_of, ranked, room_of
from msc.lowering.ascend.copy_kernels.tiles import BoxTile, work_of
from msc.lowering.ascend.copy_kernels.trees import plans_in, tree_of, tree_with
from msc.lowering.ascend.insert_sync import synchronise
from msc.lowering.ascend.kernels import KernelRequest, Unlike, written_by_tree
from msc.poly.schedule_tree.nodes import Tree
from msc.poly.schedule_tree.text import to_lines

TRIES = 24
"""Plans that are tried, the best predicted ones."""


def write(request: KernelRequest) -> DavinciKernelOp | None:
    """The kernel that moves boxes through UB; None where one computes, or has elements that cores do not know.

    Raises MSC0408 for a schedule that it cannot follow.
    """
    form = form_of(request)
    return None if form is None else written_by_tree(request, form, "the vector unit")


def form_of(request: KernelRequest) -> Copies | None:
    """The kernel as boxes; None for one that computes, or has elements that cores do not know."""
    boxes = boxes_of(request.model) if request.is_static_but_for(index_arrays(request.model)) else None
    return Copies(request, boxes) if boxes else None


@dataclass(frozen=True)
class Copies:
    """A kernel that only moves boxes, tile by tile."""

    request: KernelRequest
    boxes: Sequence[Box]
    is_of_kernel = True

    def trees(self) -> Iterator[Tree]:
        """Trees of the plans of the fewest predicted cycles."""
        found = ranked(self.boxes, self.request.target, TRIES)
        return (tree_of(self.request.model, plans) for plans in found)

    def write(self, tree: Tree) -> DavinciKernelOp:
        """The kernel that a tree says."""
        kernel = _written(self.request, self._plans(tree))
        synchronise(kernel)
        return kernel

    def reasons(self, tree: Tree) -> Sequence[str]:
        """How many cores move which tiles, and what each pipe of the busiest one has to do by prediction."""
        return _reasons(self.request, self._plans(tree))

    def _plans(self, tree: Tree) -> Sequence[CopyPlan]:
        """The plans that a tree says. Raises Unlike for a tree that is none of moves, or whose tiles have no room."""
        plans = plans_in(tree, self.request.model, self.boxes)
        if plans is None:
            raise Unlike("each statement has loops of its own, over tiles that one instruction moves")
        meant = tree_with(self.request.model, plans, tree)
        if meant.body != tree.body:
            lines, nearest = to_lines(tree), to_lines(meant)
            line = next(k for k, (a, b) in enumerate(zip_longest(lines, nearest), 1) if a != b)
            raise Unlike(f"line {line}: moves of tiles are no such loops", nearest)
        room = room_of(self.boxes, self.request.target)
        for plan in plans:
            if plan.tile.ub_bytes > room:
                statement = f"S{plan.tile.box.statement}"
                line = next(k for k, text in enumerate(to_lines(tree), 1) if statement in text.split())
                why = f"a tile takes {plan.tile.ub_bytes} bytes of UB, which has {room} for each statement"
                raise Unlike(f"line {line}: {why}")
        return plans


def _shares(request: KernelRequest, plans: Sequence[CopyPlan]) -> list[int]:
    """The tiles of a core, of each box."""
    target = request.target
    cores = cores_of([plan.tile for plan in plans], target) if any(plan.is_dealt for plan in plans) else 1
    return [plan.share(cores, target) for plan in plans]


def _written(request: KernelRequest, plans: Sequence[CopyPlan]) -> DavinciKernelOp:
    """The kernel, without flags. Raises MSC1021 for tiles without room."""
    shares = _shares(request, plans)
    cores = _cores(plans, shares)
    b = request.builder("vector", cores)
    arguments = dict(zip((*request.inputs, *request.outputs), b.arguments, strict=True))
    for plan, share in zip(plans, shares, strict=True):
        _box(b, Mover(b, plan.tile, arguments), plan.tile, cores, share)
    return b.finish()


def _cores(plans: Sequence[CopyPlan], shares: Sequence[int]) -> int:
    return max(-(-plan.tile.tasks // share) for plan, share in zip(plans, shares, strict=True))


def _reasons(request: KernelRequest, plans: Sequence[CopyPlan]) -> list[str]:
    target, shares = request.target, _shares(request, plans)
    cores = _cores(plans, shares)
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


def _box(b: KernelBuilder, mover: Mover, tile: BoxTile, cores: int, share: int) -> None:
    """The tiles of a box that are this core's."""
    first: Expr = b.block_index() * share if cores > 1 else 0
    count: Expr = share
    if tile.tasks != share * cores:
        count = b.minimum(expression(first) * -1 + tile.tasks, share, name="tiles")
    mover.prepare()
    with b.loop(0, count, 1, "tile") as index:
        mover.move(index + first, index % tile.buffers)
