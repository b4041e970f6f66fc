"""The schedules of kernels that the vector unit runs: tiles in UB, statement by statement.

A tree says what a task holds of each axis, and which loops cores share. The machine's figures then decide how many
tasks a core takes that starts later, and whether results leave from the buffers of inputs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from msc.poly.model import KernelModel
from msc.poly.schedule_tree.nodes import Tree
from msc.poly.schedule_tree.text import to_lines
from msc.schedule.forms import Unlike
from msc.schedule.vector_unit.axes import Axes, axes_of
from msc.schedule.vector_unit.chunks import Chunked, chunk_tiling, chunk_tilings, chunked, chunked_along
from msc.schedule.vector_unit.cost import Cost, tilings
from msc.schedule.vector_unit.simplified import simplified
from msc.schedule.vector_unit.tiling import UB_DTYPES, Tiling, all_tilings
from msc.schedule.vector_unit.trees import chunk_in, tiling_in, tree_of, tree_of_chunks
from msc.schedule.vector_unit.window_tiles import WindowCost, axes_of_kernel
from msc.schedule.vector_unit.windows import WindowReduction, windows
from msc.targets.davinci import DavinciTarget

TRIES = 40
"""Tilings that are tried, the best predicted ones."""
_FLOATS = ("f16", "bf16", "f32")


def tiled_kernel(
    model: KernelModel, outputs: tuple[int, ...], target: DavinciTarget
) -> StatementsInUB | WindowsInUB | None:
    """A kernel of static shapes as tiles in UB; None for one that is none."""
    if not model.statements or any(array.dtype not in UB_DTYPES for array in model.arrays):
        return None
    axes = axes_of(model)
    if axes is not None:
        return StatementsInUB(model, outputs, target, axes)
    found = windows(model)
    if found is None:
        return None
    filters = [] if found.filters is None else [model.arrays[found.filters]]
    own = axes_of(found.tail)
    if own is None or any(array.dtype not in _FLOATS for array in (found.image, *filters)):
        return None
    return WindowsInUB(found.kernel, outputs, target, axes_of_kernel(found, own), found, own)


@dataclass(frozen=True)
class TiledKernel(ABC):
    """A kernel whose trees are of the statements of `model`, over `axes`."""

    model: KernelModel
    outputs: tuple[int, ...]
    target: DavinciTarget
    axes: Axes

    @cached_property
    @abstractmethod
    def cost(self) -> Cost:
        """The costs of tilings."""

    @abstractmethod
    def trees(self) -> Iterator[Tree]:
        """Trees of the tilings of the fewest predicted cycles."""

    def neighbours(self) -> Iterator[Tree]:
        """Trees of other tilings."""
        return self.trees()

    def tiling_in(self, tree: Tree) -> Tiling:
        """The tiling that a tree says. Raises Unlike for a tree that is none of tasks."""
        tiling = tiling_in(tree, self.axes, self.target)
        if tiling is not None and not tiling.equal:
            tiling = self.cost.on_cores(tiling)
        meant = tree_of(self.model, self.axes, tiling) if tiling is not None else None
        if tiling is None or meant is None or meant.body != tree.body:
            notes = tuple(to_lines(meant)) if meant is not None else ()
            raise Unlike("tasks run each statement over their whole tile, in order", notes)
        return tiling

    def reasons(self, tree: Tree) -> Sequence[str]:
        """The tasks of a tree, and their predicted cycles."""
        tiling = self.tiling_in(tree)
        tasks = self.axes.count(tiling.outer) if tiling.chunked else tiling.tasks(self.axes)
        shared = f"{tasks} tasks on {tiling.cores} of {self.target.cores.vector} vector cores"
        if tiling.chunked:
            return [f"{shared}, chunks of {tiling.tile}"]
        buffers = "one task for each core"
        if tasks > tiling.cores:
            buffers = f"{'two buffers' if tiling.double else 'one buffer'} for inputs and outputs"
        return [f"{shared}, {buffers}", f"{self.cost.cycles(tiling):.0f} cycles predicted for the busiest core"]


@dataclass(frozen=True)
class StatementsInUB(TiledKernel):
    """Statements over the same axes."""

    @cached_property
    def plain(self) -> tuple[KernelModel, Axes]:
        """The kernel that tasks compute; its axes have the same numbers."""
        return simplified(self.model, self.axes)

    @cached_property
    def cost(self) -> Cost:
        return Cost(*self.plain, self.target)

    @cached_property
    def _chunks(self) -> tuple[Chunked, Chunked] | None:
        """How a reduction runs chunk by chunk: of the kernel that tasks compute, and of the statements of trees."""
        model, axes = self.plain
        parts = chunked(model, self.outputs, axes)
        said = None if parts is None else chunked_along(self.model, self.outputs, self.axes, parts.axis)
        return None if parts is None or said is None else (parts, said)

    @property
    def chunks(self) -> Chunked | None:
        """The statements before, over and after chunks, of the kernel that tasks compute."""
        return None if self._chunks is None else self._chunks[0]

    def trees(self) -> Iterator[Tree]:
        """Tiles with two buffers, chunks of a reduction over more than UB holds, tiles with one buffer."""
        yield from self._tiled(double=True)
        if self._chunks is not None:
            found = chunk_tilings(self.plain[1], self._chunks[0], self.target)
            yield from (tree_of_chunks(self.model, self.axes, tiling, self._chunks[1]) for tiling in found)
        yield from self._tiled(double=False)

    def _tiled(self, *, double: bool) -> Iterator[Tree]:
        model, axes = self.plain
        found = tilings(model, self.outputs, axes, self.target, double=double)[:TRIES]
        trees = (tree_of(self.model, self.axes, tiling) for tiling in found)
        return (tree for tree in trees if tree is not None)

    def tiling_in(self, tree: Tree) -> Tiling:
        size = chunk_in(tree)
        if size is not None and self._chunks is not None:
            parts, said = self._chunks
            tiling = chunk_tiling(self.plain[1], parts, self.target, size)
            if tree_of_chunks(self.model, self.axes, tiling, said).body == tree.body:
                return tiling
        return super().tiling_in(tree)


@dataclass(frozen=True)
class WindowsInUB(TiledKernel):
    """Windows for each channel, and what follows: depthwise convolutions and poolings."""

    windows: WindowReduction
    tail: Axes

    @cached_property
    def cost(self) -> WindowCost:
        return WindowCost(self.windows, self.tail, self.target)

    def trees(self) -> Iterator[Tree]:
        """Tiles of the rows and columns of sums."""
        cost = self.cost
        possible = dict.fromkeys(t for t in all_tilings(self.outputs, self.tail, self.target) if cost.fits(t))
        predicted = {tiling: cost.cycles(tiling) for tiling in map(cost.on_cores, possible)}
        best = sorted(predicted, key=lambda tiling: (predicted[tiling], tiling.tile))[:TRIES]
        return (tree for t in best if (tree := tree_of(self.model, self.axes, t)) is not None)

    def tiling_in(self, tree: Tree) -> Tiling:
        tiling = super().tiling_in(tree)
        if not self.cost.is_possible(tiling):
            raise Unlike("a task has windows of one image, of all its channels")
        return tiling
