"""The writer of kernels of windows: depthwise convolutions and poolings on the vector unit."""

from __future__ import annotations

from collections.abc import Mapping

from msc.dialects.davinci import DavinciKernelOp
from msc.lowering.ascend.builder import Buffer, KernelBuilder
from msc.lowering.ascend.kernels import KernelRequest
from msc.lowering.ascend.vector_kernels.axes import Axes, axes_of
from msc.lowering.ascend.vector_kernels.bodies import NotForVectors
from msc.lowering.ascend.vector_kernels.tiling import UB_DTYPES, Tiling, all_tilings
from msc.lowering.ascend.vector_kernels.window_tile import WindowCost, WindowTile
from msc.lowering.ascend.vector_kernels.windows import WindowReduction, windows
from msc.lowering.ascend.vector_kernels.writer import TRIES, finished, with_room, write_tasks

_FLOATS = ("f16", "bf16", "f32")


def write(request: KernelRequest) -> DavinciKernelOp | None:
    """The kernel of a window for each channel, with what follows it; None for another one, or without room in UB.

    Raises MSC0408 for any schedule that the kernel carries.
    """
    if not request.is_static:
        return None
    found = windows(request.model)
    if found is None or any(array.dtype not in UB_DTYPES for array in request.model.arrays):
        return None
    filters = [] if found.filters is None else [request.model.arrays[found.filters]]
    if any(array.dtype not in _FLOATS for array in (found.image, *filters)):
        return None
    axes = axes_of(found.tail)
    if axes is None:
        return None
    if request.schedule is not None:
        raise request.refused("the vector unit", "msc chooses the tiles of windows")
    cost = WindowCost(found, axes, request.target)
    tilings = _tilings(request, axes, cost)
    try:
        made = with_room(tilings[:TRIES], lambda tiling: _finished(request, found, cost, tiling))
    except NotForVectors:
        return None
    if made is None:
        return None
    _note(request, axes, made[0], cost)
    return made[1]


def _tilings(request: KernelRequest, axes: Axes, cost: WindowCost) -> list[Tiling]:
    """The tilings of the tail that windows can have and that have room, the fastest by prediction first."""
    possible = dict.fromkeys(t for t in all_tilings(request.outputs, axes, request.target) if cost.fits(t))
    predicted = {tiling: cost.cycles(tiling) for tiling in map(cost.on_cores, possible)}
    return sorted(predicted, key=lambda tiling: (predicted[tiling], tiling.tile))


def _finished(request: KernelRequest, found: WindowReduction, cost: WindowCost, tiling: Tiling) -> DavinciKernelOp:
    def tile(b: KernelBuilder, arguments: Mapping[int, Buffer]) -> WindowTile:
        return WindowTile(b, found, cost.axes, tiling, arguments, in_place=cost.stores_in_place(tiling))

    return finished(request, tiling, tile, lambda b, t: write_tasks(b, t, cost.axes, tiling, cost.launch(tiling)))


def _note(request: KernelRequest, axes: Axes, tiling: Tiling, cost: WindowCost) -> None:
    reasons = [
        f"{tiling.tasks(axes)} tasks on {tiling.cores} of {request.target.cores.vector} vector cores: windows",
        f"{cost.cycles(tiling):.0f} cycles predicted for the busiest core",
    ]
    request.note(None, reasons)
