"""The writer of kernels that only move data."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr, StringAttr

from msc.dialects.davinci import KernelOp
from msc.dialects.davinci.attributes import DAVINCI_REASONS
from msc.lowering.ascend.builder import Expr, KernelBuilder, expression
from msc.lowering.ascend.copy_kernels.boxes import Box, boxes_of
from msc.lowering.ascend.copy_kernels.moves import Mover
from msc.lowering.ascend.copy_kernels.tiles import Tile, best, cycles
from msc.lowering.ascend.insert_sync import synchronise
from msc.lowering.ascend.kernels import Request
from msc.support.diagnostics import MscError
from msc.targets.davinci import DavinciTarget

_MARGIN = 2048
"""Bytes of UB for the alignment of buffers."""


def write(request: Request) -> KernelOp | None:
    """The kernel that moves boxes through UB; None where one computes, or has elements that cores do not know."""
    if not request.is_static or request.schedule is not None:
        return None
    boxes = boxes_of(request.model)
    if not boxes:
        return None
    chosen = _chosen(boxes, request.target)
    if chosen is None:
        return None
    tiles, cores = chosen
    b = request.builder("vector", cores)
    arguments = dict(zip((*request.inputs, *request.outputs), b.arguments, strict=True))
    try:
        for tile in tiles:
            _box(b, Mover(b, tile, arguments), tile, cores)
        kernel = b.finish()
        synchronise(kernel)
    except MscError:  # no room, or too few flags
        return None
    _note(request, tiles, cores)
    return kernel


def _chosen(boxes: Sequence[Box], target: DavinciTarget) -> tuple[list[Tile], int] | None:
    """Tiles and the number of cores: each core more starts later, and takes a share of the work."""
    room = (target.buffers.ub - target.buffers.ub_reserved) // len(boxes) - _MARGIN
    found: list[tuple[float, int, list[Tile]]] = []
    for cores in sorted({target.cores.vector, *(1 << k for k in range(target.cores.vector.bit_length()))}):
        tiles = [tile for box in boxes if (tile := best(box, target, cores, room)) is not None]
        if len(tiles) < len(boxes):
            return None
        used = max(min(cores, -(-tile.tasks // -(-tile.tasks // cores))) for tile in tiles)
        starting = used * target.cores.launch_us * target.clock.mhz
        found.append((starting + sum(cycles(tile, target, cores) for tile in tiles), used, tiles))
    _, used, tiles = min(found, key=lambda choice: choice[:2])
    return tiles, used


def _note(request: Request, tiles: Sequence[Tile], cores: int) -> None:
    most = max(tile.tasks for tile in tiles)
    forms = ", ".join(dict.fromkeys(f"{tile.rows} x {tile.lanes} {tile.form}" for tile in tiles))
    reasons = [f"{most} tiles on {cores} of {request.target.cores.vector} vector cores", f"tiles: {forms}"]
    request.op.attributes[DAVINCI_REASONS] = ArrayAttr([StringAttr(reason) for reason in reasons])


def _box(b: KernelBuilder, mover: Mover, tile: Tile, cores: int) -> None:
    """The tiles of a box that are this core's."""
    share = -(-tile.tasks // cores)
    first: Expr = b.block_index() * share if cores > 1 else 0
    count: Expr = share
    if tile.tasks != share * cores:
        count = b.minimum(expression(first) * -1 + tile.tasks, share, name="tiles")
    mover.prepare()
    with b.loop(0, count, 1, "tile") as index:
        mover.move(index + first, index % 2)
