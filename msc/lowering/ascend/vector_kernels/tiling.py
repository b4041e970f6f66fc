"""How a kernel is cut into tiles for UB: what one task holds of each axis, and how arrays lie in UB."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

from msc.lowering.ascend.builder import Expr
from msc.lowering.ascend.vector_kernels.axes import Axes
from msc.poly.model import KernelModel
from msc.targets.davinci import DavinciTarget
from msc.targets.davinci_isa import DTYPES

UB_DTYPES = {"f16": "f16", "f32": "f32", "bf16": "f32", "i1": "f16", "i8": "f16", "ui8": "f16", "i32": "i32"}
"""In which type the vector unit computes on each element type: it has no bf16, bytes fit f16, booleans are 0 and 1."""
GM_DTYPES = {**{name: name for name in UB_DTYPES}, "i1": "ui8"}
"""How elements lie in global memory."""


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
    return 32 // min(sizes)


def tilings(model: KernelModel, outputs: Sequence[int], axes: Axes, target: DavinciTarget) -> list[Tiling]:
    """The tilings of a kernel, the fastest by prediction first."""
    found = list(_all_tilings(model, outputs, axes, target))
    return sorted(found, key=lambda t: (predicted_cycles(model, axes, t, target), t.tile))


def _all_tilings(model: KernelModel, outputs: Sequence[int], axes: Axes, target: DavinciTarget) -> Iterator[Tiling]:
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
        tiles |= {1 << k for k in range(extent.bit_length())}
        lanes = split == axes.last
        tiles |= {min(extent, -(-tile // 128) * 128) for tile in tiles} if lanes else set()
        for tile in tiles:
            tasks = axes.count(outer) * -(-extent // tile)
            share = -(-tasks // cores)
            yield Tiling(outer, split, tile, -(-tasks // share))
    yield Tiling((), None, 1, 1)


def bytes_moved(model: KernelModel, axes: Axes, tiling: Tiling, kind: str) -> int:
    """The bytes that a task moves of the arrays of a kind."""
    return sum(
        prod(tiling.capacity(axes, axis) for axis in axes.arrays[k]) * DTYPES[GM_DTYPES[array.dtype]]
        for k, array in enumerate(model.arrays)
        if array.kind == kind
    )


def predicted_cycles(model: KernelModel, axes: Axes, tiling: Tiling, target: DavinciTarget) -> float:
    """The cycles of the busiest core: the slowest of reading, computing and writing, and one fill of the pipeline."""
    gm, shared, vector = target.gm, target.shared, target.vector
    per_core = -(-tiling.tasks(axes) // tiling.cores)
    read, written = (bytes_moved(model, axes, tiling, kind) for kind in ("input", "output"))
    reading = gm.ub_start + read / gm.packet * gm.ub_packet
    writing = gm.write_start + written / gm.packet * gm.write_packet
    together = (read + written) * tiling.cores / shared.l2_mixed
    points = (prod(tiling.capacity(axes, a) for a in s) / 64 for s in axes.statements)
    computing = sum(2 * vector.start + repeats for repeats in points)
    return per_core * max(reading, writing, together, computing) + reading + computing + writing + gm.write_latency


def fits(model: KernelModel, axes: Axes, tiling: Tiling, target: DavinciTarget) -> bool:
    """Whether inputs and outputs alone have room, two buffers each."""
    moved = bytes_moved(model, axes, tiling, "input") + bytes_moved(model, axes, tiling, "output")
    return (1 + tiling.double) * moved <= target.buffers.ub - target.buffers.ub_reserved


def sizes(axes: Axes, tiling: Tiling, axis: int, count: Expr) -> Expr:
    """How much of an axis a task with `count` of the split axis has."""
    return count if axis == tiling.split else tiling.capacity(axes, axis)
