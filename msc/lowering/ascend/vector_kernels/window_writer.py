"""The writer of kernels of windows: depthwise convolutions and poolings on the vector unit."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from msc.dialects.davinci import DavinciKernelOp
from msc.lowering.ascend.insert_sync import synchronise
from msc.lowering.ascend.kernels import KernelRequest
from msc.lowering.ascend.vector_kernels.axes import Axes, axes_of
from msc.lowering.ascend.vector_kernels.bodies import NotForVectors
from msc.lowering.ascend.vector_kernels.room import ConstantBuffer
from msc.lowering.ascend.vector_kernels.tiling import UB_DTYPES, Tiling, all_tilings
from msc.lowering.ascend.vector_kernels.window_tile import WindowCost, WindowTile
from msc.lowering.ascend.vector_kernels.windows import WindowReduction, windows
from msc.lowering.ascend.vector_kernels.writer import fill_places, write_tasks
from msc.support.diagnostics import MscError

_TRIES = 40
"""Tilings that are tried, the best predicted ones."""
_FLOATS = ("f16", "bf16", "f32")


def write(request: KernelRequest) -> DavinciKernelOp | None:
    """The kernel of a window for each channel, with what follows it; None for another one, or without room in UB."""
    if not request.is_static or request.schedule is not None:
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
    cost = WindowCost(found, axes, request.target)
    for tiling in islice(_tilings(request, axes, cost), _TRIES):
        try:
            kernel = _finished(request, found, axes, tiling)
        except NotForVectors:
            return None
        except MscError:  # no room, or too few flags
            continue
        _note(request, axes, tiling, cost)
        return kernel
    return None


def _tilings(request: KernelRequest, axes: Axes, cost: WindowCost) -> list[Tiling]:
    """The tilings of the tail that windows can have and that have room, the fastest by prediction first."""
    possible = dict.fromkeys(t for t in all_tilings(request.outputs, axes, request.target) if cost.fits(t))
    predicted = {tiling: cost.cycles(tiling) for tiling in map(cost.on_cores, possible)}
    return sorted(predicted, key=lambda tiling: (predicted[tiling], tiling.tile))


def _finished(request: KernelRequest, found: WindowReduction, axes: Axes, tiling: Tiling) -> DavinciKernelOp:
    """The kernel with its flags."""
    _, fills = _written(request, found, axes, tiling, [])
    kernel, _ = _written(request, found, axes, tiling, fills)
    synchronise(kernel)
    return kernel


def _written(
    request: KernelRequest, found: WindowReduction, axes: Axes, tiling: Tiling, fills: Sequence[ConstantBuffer]
) -> tuple[DavinciKernelOp, Sequence[ConstantBuffer]]:
    b = request.builder("vector", tiling.cores)
    arguments = dict(zip((*request.inputs, *request.outputs), b.arguments, strict=True))
    cost = WindowCost(found, axes, request.target)
    tile = WindowTile(b, found, axes, tiling, arguments, in_place=cost.stores_in_place(tiling))
    fill_places(b, fills)
    tile.load_kept()
    write_tasks(b, tile, axes, tiling, cost.launch(tiling))
    return b.finish(), tile.room.fills


def _note(request: KernelRequest, axes: Axes, tiling: Tiling, cost: WindowCost) -> None:
    reasons = [
        f"{tiling.tasks(axes)} tasks on {tiling.cores} of {request.target.cores.vector} vector cores: windows",
        f"{cost.cycles(tiling):.0f} cycles predicted for the busiest core",
    ]
    request.note(None, reasons)
