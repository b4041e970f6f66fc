"""The writer of vector kernels."""

from __future__ import annotations

from itertools import islice

from xdsl.dialects.builtin import ArrayAttr, StringAttr

from msc.dialects.davinci import KernelOp
from msc.dialects.davinci.attributes import DAVINCI_REASONS, DAVINCI_SCHEDULE
from msc.dialects.gk.schedule import ScheduleAttr
from msc.ir.locations import source_location
from msc.lowering.ascend.builder import Buffer, Expr, KernelBuilder, expression
from msc.lowering.ascend.insert_sync import synchronise
from msc.lowering.ascend.kernels import Request
from msc.lowering.ascend.vector_kernels.axes import Axes, axes_of
from msc.lowering.ascend.vector_kernels.bodies import NotForVectors
from msc.lowering.ascend.vector_kernels.tile import Tile
from msc.lowering.ascend.vector_kernels.tiling import UB_DTYPES, Tiling, fits, predicted_cycles, tilings
from msc.lowering.ascend.vector_kernels.trees import tiling_in, tree_of
from msc.poly.schedule_tree.text import to_lines
from msc.support.diagnostics import Diagnostic, MscError
from msc.targets.davinci_isa import Space

_TRIES = 40
"""Tilings that are tried, the best predicted ones."""


def write(request: Request) -> KernelOp | None:
    """The kernel on the vector unit; None for what that does not do, or has no room for in UB.

    Raises MSC0408 for a schedule that it cannot follow.
    """
    model = request.model
    if not request.is_static or any(array.dtype not in UB_DTYPES for array in model.arrays):
        return None
    axes = axes_of(model)
    if axes is None or not model.statements:
        return None
    if request.schedule is not None:
        return _by_hand(request, axes, request.schedule)
    candidates = tilings(model, request.outputs, axes, request.target)
    for tiling in islice((t for t in candidates if fits(model, axes, t, request.target)), _TRIES):
        try:
            kernel = written(request, axes, tiling)
        except NotForVectors:
            return None
        except MscError:  # no room, or too few flags
            continue
        _note(request, axes, tiling)
        return kernel
    return None


def _note(request: Request, axes: Axes, tiling: Tiling) -> None:
    """The schedule and its reasons, on the kernel."""
    tree = tree_of(request.model, axes, tiling)
    if tree is not None:
        request.op.attributes[DAVINCI_SCHEDULE] = ScheduleAttr(tree)
    cycles = predicted_cycles(request.model, axes, tiling, request.target)
    buffers = "two buffers of what comes and goes" if tiling.tasks(axes) > tiling.cores else "one task a core"
    reasons = [
        f"{tiling.tasks(axes)} tasks on {tiling.cores} of {request.target.cores.vector} vector cores, {buffers}",
        f"{cycles:.0f} cycles predicted for the busiest core",
    ]
    request.op.attributes[DAVINCI_REASONS] = ArrayAttr([StringAttr(reason) for reason in reasons])


def _by_hand(request: Request, axes: Axes, schedule: ScheduleAttr) -> KernelOp:
    """The kernel by a schedule that somebody wrote. Raises MSC0408 where the vector unit cannot follow it."""
    tiling = tiling_in(schedule.data, axes, request.target)
    meant = tree_of(request.model, axes, tiling) if tiling is not None else None
    if tiling is None or meant is None or meant.body != schedule.data.body:
        notes = tuple(to_lines(meant)) if meant is not None else ()
        raise _refused(request, "tasks run each statement over their whole tile, in order", notes)
    try:
        kernel = written(request, axes, tiling)
    except NotForVectors as problem:
        raise _refused(request, f"the vector unit has no {problem}") from problem
    request.op.attributes[DAVINCI_SCHEDULE] = schedule
    return kernel


def _refused(request: Request, why: str, notes: tuple[str, ...] = ()) -> MscError:
    message = f"kernel {request.op.label.data!r}: its schedule cannot run on the vector unit: {why}"
    advice = "remove the attribute, and msc chooses a schedule"
    return MscError(Diagnostic("MSC0408", message, source_location(request.op), notes=notes, help=advice))


def written(request: Request, axes: Axes, tiling: Tiling) -> KernelOp:
    """The kernel with a tiling. Raises NotForVectors; MSC1021 and MSC1023 where the tiling has no room."""
    _, fills = _written(request, axes, tiling, [])
    kernel, _ = _written(request, axes, tiling, fills)
    synchronise(kernel)
    return kernel


def _written(
    request: Request, axes: Axes, tiling: Tiling, fills: list[tuple[int, int]]
) -> tuple[KernelOp, list[tuple[int, int]]]:
    """The kernel, and the places in UB (first byte, bytes) that have to hold something from the start."""
    b = request.builder("vector", tiling.cores)
    arguments = dict(zip((*request.inputs, *request.outputs), b.arguments, strict=True))
    tile = Tile(b, request.model, axes, tiling, arguments)
    _fill(b, fills)
    tile.load_kept()
    _tasks(b, tile, axes, tiling)
    return b.finish(), tile.room.filled_places()


def _fill(b: KernelBuilder, fills: list[tuple[int, int]]) -> None:
    for first, size in fills:
        buffer: Buffer = b.alloc_at(Space.ub, "f32", size // 4, first, "zeros")
        b.emit("set_mask_count", count=size // 4)
        b.emit("vector_dup", (buffer, 0), scalar=0.0, repeat=1)


def _tasks(b: KernelBuilder, tile: Tile, axes: Axes, tiling: Tiling) -> None:
    """The tasks of a core, two at a time where there are several: one moves while the other computes."""
    tasks = tiling.tasks(axes)
    share = -(-tasks // tiling.cores)
    first: Expr = 0
    if tiling.cores > 1:
        first = b.block_index() * share
    if share == 1:
        tile.write(first, tile.buffers())
        return
    even = tasks % share == 0
    count: Expr = share if even else b.minimum(expression(first) * -1 + tasks, share, name="tasks")
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
