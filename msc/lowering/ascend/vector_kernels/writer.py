"""Kernels of the vector unit, as their schedule trees say."""

from __future__ import annotations

from msc.dialects.davinci import DavinciKernelOp
from msc.lowering.ascend.builder import Expr, KernelBuilder, expression
from msc.lowering.ascend.insert_sync import synchronise
from msc.lowering.ascend.kernels import CoreUnit, KernelRequest
from msc.lowering.ascend.vector_kernels.chunks import write_chunks
from msc.lowering.ascend.vector_kernels.shares import share_of
from msc.lowering.ascend.vector_kernels.tile import TaskWriter
from msc.lowering.ascend.vector_kernels.window_tile import WindowTile
from msc.poly.schedule_tree.nodes import Tree
from msc.schedule.vector_unit.axes import Axes
from msc.schedule.vector_unit.cost import StaggeredStart
from msc.schedule.vector_unit.strategy import StatementsInUB, WindowsInUB, tiled_kernel
from msc.schedule.vector_unit.tiling import Tiling
from msc.targets.davinci_isa import DTYPES, Space


def _form(request: KernelRequest) -> StatementsInUB | WindowsInUB | None:
    return tiled_kernel(request.model, request.outputs, request.target) if request.is_static else None


def _written(request: KernelRequest, form: StatementsInUB | WindowsInUB, tree: Tree) -> DavinciKernelOp:
    """The kernel that a tree says."""
    tiling = form.tiling_in(tree)
    b = request.builder("vector", tiling.cores)
    arguments = dict(zip((*request.inputs, *request.outputs), b.arguments, strict=True))
    in_place = not tiling.chunked and form.cost.stores_in_place(tiling)
    if isinstance(form, WindowsInUB):
        tile = WindowTile(b, form.windows, form.tail, tiling, arguments, in_place=in_place)
    else:
        tile = TaskWriter(b, *form.plain, tiling, arguments, in_place=in_place, chunked=tiling.chunked)
    tile.load_kept()
    if tiling.chunked and isinstance(form, StatementsInUB) and form.chunks is not None:
        write_chunks(b, tile, form.chunks)
    else:
        _write_tasks(b, tile, form.axes, tiling, form.cost.launch(tiling))
    return _finished(b, tile)


UNIT = CoreUnit("the vector unit", _form, _written)


def _finished(b: KernelBuilder, tile: TaskWriter) -> DavinciKernelOp:
    """The kernel with its flags; what places in UB hold from the start is filled in before all else."""
    with b.prologue():
        for fill in tile.room.fills:
            elements = fill.bytes // DTYPES[fill.dtype]
            buffer = b.alloc_at(Space.ub, fill.dtype, elements, fill.first, "filled")
            b.emit("set_mask_count", count=elements)
            b.emit("vector_dup", (buffer, 0), scalar=fill.value, repeat=1)
    kernel = b.finish()
    synchronise(kernel)
    return kernel


def _share(b: KernelBuilder, tiling: Tiling, tasks: int, launch: StaggeredStart) -> tuple[Expr, Expr]:
    """The first task of a core, and how many it has."""
    if tiling.cores == 1:
        return 0, tasks
    if not tiling.equal:
        return share_of(b, tasks, tiling.cores, launch)
    share = -(-tasks // tiling.cores)
    first = b.block_index() * share
    return first, share if tasks % share == 0 else b.minimum(first * -1 + tasks, share, name="tasks")


def _write_tasks(b: KernelBuilder, tile: TaskWriter, axes: Axes, tiling: Tiling, launch: StaggeredStart) -> None:
    """The tasks of a core, two at a time where there are several: one moves while the other computes."""
    tasks = tiling.tasks(axes)
    share = -(-tasks // tiling.cores)
    if share == 1:
        tile.write(b.block_index() if tiling.cores > 1 else 0, tile.buffers())
        return
    if launch.grain > 1 and tiling.cores > 1:
        assert tiling.split is not None
        tile.share = _share(b, tiling, axes.extents[tiling.split], launch)
        first, count = 0, (expression(tile.share[1]) + (tiling.tile - 1)) // tiling.tile
    else:
        first, count = _share(b, tiling, tasks, launch)
    one = tile.buffers()
    if not tiling.double:
        with b.loop(0, count, 1, "task") as task:
            tile.write(task + first, one)
        return
    two = tile.buffers()
    pairs = count // 2
    with b.loop(0, pairs, 1, "pair") as pair:
        tile.write(pair * 2 + first, one)
        tile.write(pair * 2 + first + 1, two)
    if isinstance(count, int) and count % 2 == 0:
        return
    with b.loop(expression(pairs) * 2, count, 1, "last") as last:
        tile.write(last + first, one)
