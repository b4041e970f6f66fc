"""The tiles of windows for each channel: the pixels that a task needs, and what it costs."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from msc.schedule.vector_unit.axes import Axes
from msc.schedule.vector_unit.cost import Cost
from msc.schedule.vector_unit.tiling import GM_DTYPES, UB_DTYPES, Tiling
from msc.schedule.vector_unit.windows import WindowReduction, reach
from msc.targets.davinci import DavinciTarget
from msc.targets.davinci_isa import DTYPES, MOST_BURSTS, MOST_REPEATS

LANES = 64
"""Elements of f32 in a repeat."""
COMPUTED = "f32"


@dataclass(frozen=True)
class Patch:
    """The pixels that a task needs: `rows` x `columns`, each of `pitch` elements in UB."""

    rows: int
    columns: int
    pitch: int

    @property
    def elements(self) -> int:
        """Elements in UB."""
        return self.rows * self.columns * self.pitch


def axes_of_sums(windows: WindowReduction, axes: Axes) -> tuple[int | None, ...]:
    """The axes of images, rows, columns and channels; None for one of a single element."""
    own = iter(axes.arrays[windows.sums])
    return tuple(next(own) if size > 1 else None for size in windows.tail.arrays[windows.sums].shape)


def axes_of_kernel(windows: WindowReduction, axes: Axes) -> Axes:
    """The axes of the whole kernel: those of what follows the sums, with the same numbers, and those of the taps.

    Statements of sums run over them in the order of the instructions. Arrays are left out.
    """
    kernel, found = windows.kernel, list(axes_of_sums(windows, axes))
    taps = [way.taps for way in windows.ways if way.taps > 1]
    numbers = iter(range(len(axes.extents), len(axes.extents) + len(taps)))
    found += [next(numbers) if way.taps > 1 else None for way in windows.ways]
    others = [k for k in range(len(kernel.statements)) if k not in windows.dims]
    copied = len(windows.tail.statements) - len(others)
    dims = [{others[k - copied]: d for k, d in own.items() if k >= copied} for own in axes.dims]
    dims += [dict[int, int]() for _ in taps]
    order = list[tuple[int, ...]](() for _ in kernel.statements)
    for number, own in zip(others, axes.statements[copied:], strict=True):
        order[number] = own
    for number, places in windows.dims.items():
        pairs = [(axis, d) for axis, d in zip(found, places, strict=True) if axis is not None and d is not None]
        for axis, d in pairs:
            dims[axis][number] = d
        inside = [axis for axis, _ in pairs]
        order[number] = tuple(sorted(inside, key=lambda axis: (axis < len(axes.extents), axis)))
    return Axes((*axes.extents, *taps), (), tuple(order), (), tuple(dims))


def patch_of(windows: WindowReduction, axes: Axes, tiling: Tiling) -> Patch:
    """What a task brings of an image."""
    sums = axes_of_sums(windows, axes)
    rows, columns = (
        (_capacity(axes, tiling, axis) - 1) * way.stride + reach(way)
        for axis, way in zip(sums[1:3], windows.ways, strict=True)
    )
    unit = 32 // DTYPES[GM_DTYPES[windows.image.dtype]]
    return Patch(rows, columns, -(-windows.image.shape[3] // unit) * unit)


def _capacity(axes: Axes, tiling: Tiling, axis: int | None) -> int:
    return 1 if axis is None else tiling.capacity(axes, axis)


def instruction(windows: WindowReduction) -> str:
    """What a tap does to the sums."""
    return "vmla" if windows.filters is not None else {"add": "vadd", "max": "vmax"}[windows.combine]


class WindowCost(Cost):
    """Tasks that bring pixels and compute sums of them, where others bring the sums."""

    def __init__(self, windows: WindowReduction, axes: Axes, target: DavinciTarget) -> None:
        super().__init__(windows.tail, axes, target)
        self.windows = windows

    def grain(self, tiling: Tiling) -> int:
        """Cores share whole tasks: windows of a part would start elsewhere."""
        del tiling
        return 1

    def is_possible(self, tiling: Tiling) -> bool:
        """Whether a task is of one image, has all channels, and few enough columns for a move and an instruction."""
        image, _, columns, channels = axes_of_sums(self.windows, self.axes)
        whole = channels is None or tiling.capacity(self.axes, channels) == self.axes.extents[channels]
        one = _capacity(self.axes, tiling, image) == 1
        few = patch_of(self.windows, self.axes, tiling).columns <= MOST_BURSTS
        return whole and one and few and _capacity(self.axes, tiling, columns) <= MOST_REPEATS

    def fits(self, tiling: Tiling) -> bool:
        """Whether all that a task needs has room, but for what computing the tail takes."""
        if not self.is_possible(tiling):
            return False
        patch, image = patch_of(self.windows, self.axes, tiling), self.windows.image
        converted = patch.elements * DTYPES[COMPUTED] * (UB_DTYPES[image.dtype] != image.dtype or image.dtype == "f16")
        filters = self.windows.taps * patch.pitch * DTYPES[COMPUTED] * (self.windows.filters is not None)
        moved = self._bytes(tiling, "input") + self._sums(tiling)
        if not self.stores_in_place(tiling):
            moved += self._bytes(tiling, "output")
        return (
            1 + tiling.double
        ) * moved + converted + filters <= self.target.buffers.ub - self.target.buffers.ub_reserved

    def _sums(self, tiling: Tiling) -> int:
        own = self.axes.arrays[self.windows.sums]
        return prod(tiling.capacity(self.axes, axis) for axis in own) * DTYPES[COMPUTED]

    def _bytes(self, tiling: Tiling, kind: str) -> int:
        moved = super()._bytes(tiling, kind)
        if kind != "input":
            return moved
        patch = patch_of(self.windows, self.axes, tiling)
        return moved - self._sums(tiling) + patch.elements * DTYPES[GM_DTYPES[self.windows.image.dtype]]

    def _computing(self, tiling: Tiling) -> float:
        _, rows, columns, _ = axes_of_sums(self.windows, self.axes)
        patch, start = patch_of(self.windows, self.axes, tiling), self.target.vector.start + self.target.queues.barrier
        chunks = -(-self.windows.image.shape[3] // LANES)
        each = _capacity(self.axes, tiling, columns) * self._repeat(instruction(self.windows), LANES) + start
        instructions = self.windows.taps * chunks * _capacity(self.axes, tiling, rows)
        passes = int(self.windows.is_padded) + int(self.windows.image.dtype != COMPUTED)
        return super()._computing(tiling) + instructions * each + passes * (patch.elements / LANES + start)
