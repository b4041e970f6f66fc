"""Kernels that only move data, as their schedule trees say."""

from __future__ import annotations

from functools import partial

from msc.dialects.davinci import DavinciKernelOp
from msc.lowering.ascend.builder import Expr, KernelBuilder, expression
from msc.lowering.ascend.copy_kernels.moves import Mover
from msc.lowering.ascend.insert_sync import synchronise
from msc.lowering.ascend.kernels import KernelRequest, written_by_tree
from msc.poly.schedule_tree.nodes import Tree
from msc.schedule.copies.boxes import boxes_of, index_arrays
from msc.schedule.copies.strategy import Copies, used_cores
from msc.schedule.copies.tiles import BoxTile


def write(request: KernelRequest) -> DavinciKernelOp | None:
    """The kernel that moves boxes through UB; None where one computes, or has elements that cores do not know.

    Raises MSC0408 for a schedule that it cannot follow.
    """
    boxes = boxes_of(request.model) if request.is_static_but_for(index_arrays(request.model)) else None
    if not boxes:
        return None
    form = Copies(request.model, boxes, request.target)
    return written_by_tree(request, form, partial(_written, request, form), "the vector unit")


def _written(request: KernelRequest, form: Copies, tree: Tree) -> DavinciKernelOp:
    """The kernel that a tree says. Raises MSC1021 and MSC1023 for tiles without room, or with too few flags."""
    plans = form.plans_in(tree)
    shares = form.shares(plans)
    cores = used_cores(plans, shares)
    b = request.builder("vector", cores)
    arguments = dict(zip((*request.inputs, *request.outputs), b.arguments, strict=True))
    for plan, share in zip(plans, shares, strict=True):
        _box(b, Mover(b, plan.tile, arguments), plan.tile, cores, share)
    kernel = b.finish()
    synchronise(kernel)
    return kernel


def _box(b: KernelBuilder, mover: Mover, tile: BoxTile, cores: int, share: int) -> None:
    """The tiles of a box that are this core's."""
    first: Expr = b.block_index() * share if cores > 1 else 0
    count: Expr = share
    if tile.tasks != share * cores:
        count = b.minimum(expression(first) * -1 + tile.tasks, share, name="tiles")
    mover.prepare()
    with b.loop(0, count, 1, "tile") as index:
        mover.move(index + first, index % tile.buffers)
