"""The tasks of a reduction over more than UB holds: chunks of the reduced axis, one after the other."""

from __future__ import annotations

from msc.lowering.ascend.builder import Expr, KernelBuilder
from msc.lowering.ascend.vector_kernels.homes import TaskBuffers
from msc.lowering.ascend.vector_kernels.tile import TaskWriter
from msc.schedule.vector_unit.chunks import Chunked


def write_chunks(b: KernelBuilder, tile: TaskWriter, parts: Chunked) -> None:
    """The tasks of a core."""
    axes, tiling = tile.axes, tile.tiling
    tasks = axes.count(tiling.outer)
    share = -(-tasks // tiling.cores)
    scratch = (tile.buffers(), tile.buffers())
    if tasks == 1:
        _task(b, tile, parts, 0, scratch)
        return
    first = b.block_index() * share
    count: Expr = share if tasks % share == 0 else b.minimum(first * -1 + tasks, share, name="tasks")
    with b.loop(0, count, 1, "task") as task:
        _task(b, tile, parts, task + first, scratch)


def _task(
    b: KernelBuilder, tile: TaskWriter, parts: Chunked, task: Expr, scratch: tuple[TaskBuffers, TaskBuffers]
) -> None:
    extent, size, arrays = tile.axes.extents[parts.axis], tile.tiling.tile, tile.axes.arrays
    outer = tile.indices(task)
    kept = dict(tile.values)
    moving = [{k: v for k, v in set_.inputs.items() if parts.axis in arrays[k]} for set_ in scratch]
    whole_task = {k: v for k, v in scratch[0].inputs.items() if parts.axis not in arrays[k]}
    homes = tile.arrived(TaskBuffers(whole_task, scratch[0].outputs), outer, 0)
    tile.statements(homes, parts.before)

    def chunk(turn: int, start: Expr) -> None:
        tile.chunk(TaskBuffers(moving[turn], {}), outer, start, parts.over)

    tile.code.sizes[parts.axis] = size
    whole = extent // size
    if whole > 1:
        with b.loop(0, whole // 2, 1, "pair") as pair:
            for turn in range(2):
                chunk(turn, pair * (2 * size) + turn * size)
    if whole % 2:
        chunk(0, (whole - 1) * size)
    if extent % size:
        tile.code.sizes[parts.axis] = extent % size
        chunk(1, whole * size)
    tile.code.forget_mask()
    tile.statements(homes, parts.after)
    tile.leave(scratch[0].outputs, outer, 0)
    homes.release(len(tile.model.statements))
    tile.values = kept
