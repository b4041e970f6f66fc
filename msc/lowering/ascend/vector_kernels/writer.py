"""The writer of vector kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from msc.dialects.davinci import DavinciKernelOp
from msc.dialects.gk.schedule import ScheduleAttr
from msc.lowering.ascend.builder import Buffer, Expr, KernelBuilder, expression
from msc.lowering.ascend.insert_sync import synchronise
from msc.lowering.ascend.kernels import KernelRequest
from msc.lowering.ascend.vector_kernels.axes import Axes, axes_of
from msc.lowering.ascend.vector_kernels.bodies import NotForVectors
from msc.lowering.ascend.vector_kernels.chunks import Chunked, chunk_tilings, chunked, write_chunks
from msc.lowering.ascend.vector_kernels.cost import Cost, tilings
from msc.lowering.ascend.vector_kernels.room import ConstantBuffer
from msc.lowering.ascend.vector_kernels.shares import StaggeredStart, share_of
from msc.lowering.ascend.vector_kernels.simplified import simplified
from msc.lowering.ascend.vector_kernels.tile import TaskWriter
from msc.lowering.ascend.vector_kernels.tiling import UB_DTYPES, Tiling
from msc.lowering.ascend.vector_kernels.trees import tiling_in, tree_of
from msc.poly.schedule_tree.text import to_lines
from msc.support.diagnostics import MscError
from msc.targets.davinci_isa import DTYPES, Space

TRIES = 40
"""Tilings that are tried, the best predicted ones."""


def write(request: KernelRequest) -> DavinciKernelOp | None:
    """The kernel on the vector unit; None for what that does not do, or has no room for in UB.

    Raises MSC0408 for a schedule that it cannot follow.
    """
    model = request.model
    if not request.is_static or any(array.dtype not in UB_DTYPES for array in model.arrays):
        return None
    axes = axes_of(model)
    if axes is None or not model.statements:
        return None
    plain, own = _simplified(request, axes)
    if request.schedule is not None:
        return _by_hand(request, axes, request.schedule)
    try:
        return _tiled(request, axes, double=True) or _in_chunks(plain, own) or _tiled(request, axes, double=False)
    except NotForVectors:
        return None


def _tiled(request: KernelRequest, axes: Axes, *, double: bool) -> DavinciKernelOp | None:
    """The kernel with the best tiling that has room; None where none has. Raises NotForVectors."""
    plain, own = _simplified(request, axes)
    found = tilings(plain.model, request.outputs, own, request.target, double=double)
    made = with_room(found[:TRIES], lambda tiling: _finished(plain, own, tiling, None))
    if made is None:
        return None
    _note(request, axes, made[0])
    return made[1]


def _simplified(request: KernelRequest, axes: Axes) -> tuple[KernelRequest, Axes]:
    """The kernel that tasks compute; its axes have the same numbers."""
    model, own = simplified(request.model, axes)
    return replace(request, model=model), own


def _in_chunks(request: KernelRequest, axes: Axes) -> DavinciKernelOp | None:
    """The kernel of a reduction in one pass over more than UB holds, if it is one. Raises NotForVectors."""
    parts = chunked(request.model, request.outputs, axes)
    if parts is None:
        return None
    made = with_room(chunk_tilings(axes, parts, request.target), lambda t: _finished(request, axes, t, parts))
    return None if made is None else made[1]


def _note(request: KernelRequest, axes: Axes, tiling: Tiling) -> None:
    """The schedule and its reasons, on the kernel."""
    cycles = Cost(*simplified(request.model, axes), request.target).cycles(tiling)
    several = "two buffers for inputs and outputs" if tiling.double else "one buffer for inputs and outputs"
    buffers = several if tiling.tasks(axes) > tiling.cores else "one task for each core"
    reasons = [
        f"{tiling.tasks(axes)} tasks on {tiling.cores} of {request.target.cores.vector} vector cores, {buffers}",
        f"{cycles:.0f} cycles predicted for the busiest core",
    ]
    request.note(tree_of(request.model, axes, tiling), reasons)


def _by_hand(request: KernelRequest, axes: Axes, schedule: ScheduleAttr) -> DavinciKernelOp:
    """The kernel by a schedule that somebody wrote. Raises MSC0408 where the vector unit cannot follow it."""
    tiling = tiling_in(schedule.data, axes, request.target)
    if tiling is not None and not tiling.equal:
        tiling = Cost(*simplified(request.model, axes), request.target).on_cores(tiling)
    meant = tree_of(request.model, axes, tiling) if tiling is not None else None
    if tiling is None or meant is None or meant.body != schedule.data.body:
        notes = tuple(to_lines(meant)) if meant is not None else ()
        raise request.refused("the vector unit", "tasks run each statement over their whole tile, in order", notes)
    try:
        kernel = written(request, axes, tiling)
    except NotForVectors as problem:
        raise request.refused("the vector unit", f"it has no {problem}") from problem
    except MscError as problem:
        raise request.refused("the vector unit", problem.diagnostics[0].message) from problem
    request.note(schedule)
    return kernel


def written(request: KernelRequest, axes: Axes, tiling: Tiling) -> DavinciKernelOp:
    """The kernel with a tiling. Raises NotForVectors; MSC1021 and MSC1023 where the tiling has no room."""
    return _finished(*_simplified(request, axes), tiling, None)


def _finished(request: KernelRequest, axes: Axes, tiling: Tiling, parts: Chunked | None) -> DavinciKernelOp:
    cost = Cost(request.model, axes, request.target)
    in_place = parts is None and cost.stores_in_place(tiling)

    def tile(b: KernelBuilder, arguments: Mapping[int, Buffer]) -> TaskWriter:
        return TaskWriter(b, request.model, axes, tiling, arguments, in_place=in_place, chunked=parts is not None)

    def tasks(b: KernelBuilder, tile: TaskWriter) -> None:
        if parts is None:
            write_tasks(b, tile, axes, tiling, cost.launch(tiling))
        else:
            write_chunks(b, tile, parts)

    return finished(request, tiling, tile, tasks)


TileT = TypeVar("TileT", bound=TaskWriter)


def finished(
    request: KernelRequest,
    tiling: Tiling,
    make: Callable[[KernelBuilder, Mapping[int, Buffer]], TileT],
    tasks: Callable[[KernelBuilder, TileT], None],
) -> DavinciKernelOp:
    """The kernel with its flags, written twice: the first time tells what places in UB have to hold from the start."""

    def written(fills: Sequence[ConstantBuffer]) -> tuple[DavinciKernelOp, Sequence[ConstantBuffer]]:
        b = request.builder("vector", tiling.cores)
        tile = make(b, dict(zip((*request.inputs, *request.outputs), b.arguments, strict=True)))
        _fill_places(b, fills)
        tile.load_kept()
        tasks(b, tile)
        return b.finish(), tile.room.fills

    _, fills = written([])
    kernel, _ = written(fills)
    synchronise(kernel)
    return kernel


def with_room(
    tilings: Iterable[Tiling], make: Callable[[Tiling], DavinciKernelOp]
) -> tuple[Tiling, DavinciKernelOp] | None:
    """The first tiling whose kernel has room and flags enough, and the kernel."""
    for tiling in tilings:
        try:
            return tiling, make(tiling)
        except MscError:
            continue
    return None


def _fill_places(b: KernelBuilder, fills: Sequence[ConstantBuffer]) -> None:
    """Fill the places in UB that hold something from the start."""
    for fill in fills:
        elements = fill.bytes // DTYPES[fill.dtype]
        buffer: Buffer = b.alloc_at(Space.ub, fill.dtype, elements, fill.first, "filled")
        b.emit("set_mask_count", count=elements)
        b.emit("vector_dup", (buffer, 0), scalar=fill.value, repeat=1)


def _share(b: KernelBuilder, tiling: Tiling, tasks: int, launch: StaggeredStart) -> tuple[Expr, Expr]:
    """The first task of a core, and how many it has."""
    if tiling.cores == 1:
        return 0, tasks
    if not tiling.equal:
        return share_of(b, tasks, tiling.cores, launch)
    share = -(-tasks // tiling.cores)
    first = b.block_index() * share
    return first, share if tasks % share == 0 else b.minimum(first * -1 + tasks, share, name="tasks")


def write_tasks(b: KernelBuilder, tile: TaskWriter, axes: Axes, tiling: Tiling, launch: StaggeredStart) -> None:
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
