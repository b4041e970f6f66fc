"""Kernels that only move data, as their schedule trees say."""

from __future__ import annotations

from msc.dialects.davinci import DavinciKernelOp
from msc.lowering.ascend.builder import Expr, KernelBuilder, expression
from msc.lowering.ascend.copy_kernels.moves import Mover
from msc.lowering.ascend.insert_sync import synchronise
from msc.lowering.ascend.kernels import CoreUnit, KernelRequest
from msc.poly.schedule_tree.nodes import Tree
from msc.schedule.copies.boxes import boxes_of, index_arrays
from msc.schedule.copies.strategy import Copies, used_cores
from msc.schedule.copies.tiles import BoxTile


def _form(request: KernelRequest) -> Copies | None:
    """Boxes that move through UB; None where a kernel computes, or has elements that cores do not know."""
    boxes = boxes_of(request.model) if request.is_static_but_for(index_arrays(request.model)) else None
    return Copies(request.model, boxes, request.target) if boxes else None


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


UNIT = CoreUnit("the vector unit", _form, _written)


def _box(b: KernelBuilder, mover: Mover, tile: BoxTile, cores: int, share: int) -> None:
    """The tiles of a box that are this core's."""
    first: Expr = b.block_index() * share if cores > 1 else 0
    count: Expr = share
    if tile.tasks != share * cores:
        count = b.minimum(expression(first) * -1 + tile.tasks, share, name="tiles")
    mover.prepare()
    with b.loop(0, count, 1, "tile") as index:
        mover.move(index + first, index % tile.buffers)
