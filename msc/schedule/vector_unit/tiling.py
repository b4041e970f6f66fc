"""How a kernel is cut into tiles for UB: what one task holds of each axis, and how arrays lie in UB."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from msc.poly.model import KernelModel
from msc.schedule.vector_unit.axes import Axes
from msc.targets.davinci import DavinciTarget
from msc.targets.davinci_isa import BLOCK_BYTES, DTYPES, LANE_ELEMENTS

UB_DTYPES = {"f16": "f16", "f32": "f32", "bf16": "f32", "i1": "f16", "i8": "f16", "ui8": "f16", "i32": "i32"}
"""In which type the vector unit computes on each element type: it has no bf16, bytes fit f16, booleans are 0 and 1."""
GM_DTYPES = {**{name: name for name in UB_DTYPES}, "i1": "ui8"}
"""How elements lie in global memory."""


_FEW = 16
"""Up to so many, every number of rows a task is a candidate: between powers of two lies what fills UB best."""


@dataclass(frozen=True)
class Tiling:
    """A task takes one element of the axes `outer`, `tile` of the axis `split`, and all of the others.

    `split` is None where one task does everything. Tasks are numbered with the outer axes first.
    """

    outer: tuple[int, ...]
    split: int | None
    tile: int
    cores: int
    double: bool = True
    equal: bool = False
    """All cores have as many tasks, but for the last one. Else those that start earlier have more."""
    chunked: bool = False
    """A task has all of `split`, which is reduced, and takes `tile` of it at a time."""

    def tasks(self, axes: Axes) -> int:
        """How many tasks there are."""
        parts = 1 if self.split is None else -(-axes.extents[self.split] // self.tile)
        return axes.count(self.outer) * parts

    def capacity(self, axes: Axes, axis: int) -> int:
        """The most that a task holds of an axis."""
        if axis in self.outer:
            return 1
        return self.tile if axis == self.split else axes.extents[axis]


@dataclass(frozen=True)
class Layout:
    """How an array lies in UB: `axes` of more than one element, and the elements between neighbours along each."""

    axes: tuple[int, ...]
    strides: tuple[int, ...]
    elements: int

    def stride(self, axis: int) -> int:
        """Elements between neighbours along an axis; 0 along one that the array lacks."""
        return self.strides[self.axes.index(axis)] if axis in self.axes else 0


def layout_of(axes: Axes, tiling: Tiling, of: Sequence[int], unit: int) -> Layout:
    """Row by row, each row filled up to a multiple of `unit` elements."""
    kept = tuple(axis for axis in of if axis not in tiling.outer)
    strides: list[int] = []
    step = 1
    for axis in reversed(kept):
        strides.insert(0, step)
        step *= tiling.capacity(axes, axis)
        if axis == kept[-1]:
            step = -(-step // unit) * unit
    return Layout(kept, tuple(strides), max(step, unit))


def unit_of(model: KernelModel) -> int:
    """The multiple of elements that fills blocks of 32 bytes in every type of the kernel."""
    sizes = [DTYPES[GM_DTYPES[a.dtype]] for a in model.arrays] + [DTYPES[UB_DTYPES[a.dtype]] for a in model.arrays]
    return BLOCK_BYTES // min(sizes)


def all_tilings(outputs: Sequence[int], axes: Axes, target: DavinciTarget) -> Iterator[Tiling]:
    """The tilings of a kernel, each on as many cores as have tasks."""
    free = [
        axis
        for axis in range(len(axes.extents))
        if all(axis in axes.arrays[o] for o in outputs) and not any(axis in r for r in axes.reduced)
    ]
    cores = target.cores.vector
    for position, split in enumerate(free):
        extent = axes.extents[split]
        outer = tuple(free[:position])
        tiles = {extent, *(-(-extent // parts) for parts in range(1, 2 * cores + 1))}
        tiles |= {1 << k for k in range(extent.bit_length())} | set(range(1, min(extent, _FEW) + 1))
        lanes = split == axes.last
        tiles |= {min(extent, -(-tile // LANE_ELEMENTS) * LANE_ELEMENTS) for tile in tiles} if lanes else set()
        for tile in tiles:
            tasks = axes.count(outer) * -(-extent // tile)
            share = -(-tasks // cores)
            yield Tiling(outer, split, tile, -(-tasks // share))
    yield Tiling((), None, 1, 1)
