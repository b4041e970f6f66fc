"""The writer of kernels that only move data."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from msc.dialects.davinci import DavinciKernelOp
from msc.dialects.gk.schedule import ScheduleAttr
from msc.lowering.ascend.builder import Expr, KernelBuilder, expression
from msc.lowering.ascend.copy_kernels.boxes import Box, boxes_of, index_arrays
from msc.lowering.ascend.copy_kernels.moves import Mover
from msc.lowering.ascend.copy_kernels.plans import CopyPlan, chosen, cores_of, room_of
from msc.lowering.ascend.copy_kernels.tiles import BoxTile, work_of
from msc.lowering.ascend.copy_kernels.trees import plans_in, tree_of, tree_with
from msc.lowering.ascend.insert_sync import synchronise
from msc.lowering.ascend.kernels import KernelRequest
from msc.poly.schedule_tree.text import to_lines
from msc.support.diagnostics import MscError


def write(request: KernelRequest) -> DavinciKernelOp | None:
    """The kernel that moves boxes through UB; None where one computes, or has elements that cores do not know.

    Raises MSC0408 for a schedule that it cannot follow.
    """
    if not request.is_static_but_for(index_arrays(request.model)):
        return None
    boxes = boxes_of(request.model)
    if not boxes:
        return None
    if request.schedule is not None:
        return _by_hand(request, boxes, request.schedule)
    plans = chosen(boxes, request.target)
    if plans is None:
        return None
    try:
        kernel = _written(request, plans)
    except MscError:  # no room, or too few flags
        return None
    request.note(tree_of(request.model, plans), _reasons(request, plans))
    return kernel


def _by_hand(request: KernelRequest, boxes: Sequence[Box], schedule: ScheduleAttr) -> DavinciKernelOp:
    """The kernel by a schedule that somebody wrote. Raises MSC0408 where its moves cannot follow it."""
    tree = schedule.data
    plans = plans_in(tree, request.model, boxes)
    if plans is None:
        raise request.refused(
            "the vector unit", "each statement has loops of its own, over tiles that one instruction moves"
        )
    meant = tree_with(request.model, plans, tree)
    if meant.body != tree.body:
        written, nearest = to_lines(tree), to_lines(meant)
        line = next(k for k, (a, b) in enumerate(zip_longest(written, nearest), 1) if a != b)
        raise request.refused("the vector unit", f"line {line}: moves of tiles are no such loops", nearest)
    room = room_of(boxes, request.target)
    for plan in plans:
        if plan.tile.ub_bytes > room:
            line = next(k for k, text in enumerate(to_lines(tree), 1) if f"S{plan.tile.box.statement}" in text.split())
            why = f"a tile takes {plan.tile.ub_bytes} bytes of UB, which has {room} for each statement"
            raise request.refused("the vector unit", f"line {line}: {why}")
    try:
        kernel = _written(request, plans)
    except MscError as problem:
        raise request.refused("the vector unit", problem.diagnostics[0].message) from problem
    request.note(schedule, _reasons(request, plans))
    return kernel


def _shares(request: KernelRequest, plans: Sequence[CopyPlan]) -> list[int]:
    """The tiles of a core, of each box."""
    target = request.target
    cores = cores_of([plan.tile for plan in plans], target) if any(plan.is_dealt for plan in plans) else 1
    return [plan.share(cores, target) for plan in plans]


def _written(request: KernelRequest, plans: Sequence[CopyPlan]) -> DavinciKernelOp:
    """The kernel with its flags. Raises MSC1021 and MSC1023 for tiles without room, or with too few flags."""
    shares = _shares(request, plans)
    cores = _cores(plans, shares)
    b = request.builder("vector", cores)
    arguments = dict(zip((*request.inputs, *request.outputs), b.arguments, strict=True))
    for plan, share in zip(plans, shares, strict=True):
        _box(b, Mover(b, plan.tile, arguments), plan.tile, cores, share)
    kernel = b.finish()
    synchronise(kernel)
    return kernel


def _cores(plans: Sequence[CopyPlan], shares: Sequence[int]) -> int:
    return max(-(-plan.tile.tasks // share) for plan, share in zip(plans, shares, strict=True))


def _reasons(request: KernelRequest, plans: Sequence[CopyPlan]) -> list[str]:
    """How many cores move which tiles, and what each pipe of the busiest one has to do by prediction."""
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
