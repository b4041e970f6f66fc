"""Kernels of the vector unit: tiles in UB, statement by statement.

A tree says what a task holds of each axis, and which loops cores share. The machine's figures then decide how many
tasks a core takes that starts later, and whether results leave from the buffers of inputs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from msc.dialects.davinci import DavinciKernelOp
from msc.lowering.ascend.builder import Buffer, Expr, KernelBuilder, expression
from msc.lowering.ascend.insert_sync import synchronise
from msc.lowering.ascend.kernels import KernelRequest, Unlike, written_by_tree
from msc.lowering.ascend.vector_kernels.axes import Axes, axes_of
from msc.lowering.ascend.vector_kernels.chunks import (
    Chunked,
    chunk_tiling,
    chunk_tilings,
    chunked,
    chunked_along,
    write_chunks,
)
from msc.lowering.ascend.vector_kernels.cost import Cost, tilings
from msc.lowering.ascend.vector_kernels.shares import StaggeredStart, share_of
from msc.lowering.ascend.vector_kernels.simplified import simplified
from msc.lowering.ascend.vector_kernels.tile import TaskWriter
from msc.lowering.ascend.vector_kernels.tiling import UB_DTYPES, Tiling, all_tilings
from msc.lowering.ascend.vector_kernels.trees import chunk_in, tiling_in, tree_of, tree_of_chunks
from msc.lowering.ascend.vector_kernels.window_tile import WindowCost, WindowTile, axes_of_kernel
from msc.lowering.ascend.vector_kernels.windows import WindowReduction, windows
from msc.poly.model import KernelModel
from msc.poly.schedule_tree.nodes import Tree
from msc.poly.schedule_tree.text import to_lines
from msc.targets.davinci_isa import DTYPES, Space

TRIES = 40
"""Tilings that are tried, the best predicted ones."""
_FLOATS = ("f16", "bf16", "f32")


def write(request: KernelRequest) -> DavinciKernelOp | None:
    """The kernel on the vector unit; None for what that does not do, or has no room for in UB.

    Raises MSC0408 for a schedule that it cannot follow.
    """
    form = form_of(request)
    return None if form is None else written_by_tree(request, form, "the vector unit")


def form_of(request: KernelRequest) -> TiledKernel | None:
    """The kernel as tiles in UB; None for one that is none."""
    model = request.model
    if not request.is_static or not model.statements or any(array.dtype not in UB_DTYPES for array in model.arrays):
        return None
    axes = axes_of(model)
    if axes is not None:
        return StatementsInUB(request, model, axes)
    found = windows(model)
    if found is None:
        return None
    filters = [] if found.filters is None else [model.arrays[found.filters]]
    own = axes_of(found.tail)
    if own is None or any(array.dtype not in _FLOATS for array in (found.image, *filters)):
        return None
    return WindowsInUB(request, found.kernel, axes_of_kernel(found, own), found, own)


@dataclass(frozen=True)
class TiledKernel:
    """A kernel whose trees are of the statements of `model`, over `axes`."""

    request: KernelRequest
    model: KernelModel
    axes: Axes

    @property
    def is_of_kernel(self) -> bool:
        """Whether the model has the statements of the kernel, so that a person can write the trees."""
        return len(self.model.statements) == len(self.request.model.statements)

    @cached_property
    def cost(self) -> Cost:
        """The costs of tilings."""
        raise NotImplementedError

    def trees(self) -> Iterator[Tree]:
        """Trees of the tilings of the fewest predicted cycles."""
        raise NotImplementedError

    def tile(self, b: KernelBuilder, arguments: Mapping[int, Buffer], tiling: Tiling) -> TaskWriter:
        """The writer of tasks."""
        raise NotImplementedError

    def write(self, tree: Tree) -> DavinciKernelOp:
        """The kernel that a tree says."""
        tiling = self.tiling_in(tree)
        b, tile = self.started(tiling)
        _write_tasks(b, tile, self.axes, tiling, self.cost.launch(tiling))
        return _finished(b, tile)

    def reasons(self, tree: Tree) -> Sequence[str]:
        """The tasks of a tree, and their predicted cycles."""
        tiling = self.tiling_in(tree)
        buffers = "one task for each core"
        if tiling.tasks(self.axes) > tiling.cores:
            buffers = f"{'two buffers' if tiling.double else 'one buffer'} for inputs and outputs"
        cycles = f"{self.cost.cycles(tiling):.0f} cycles predicted for the busiest core"
        return [f"{self.shared(tiling.tasks(self.axes), tiling)}, {buffers}", cycles]

    def shared(self, tasks: int, tiling: Tiling) -> str:
        """How many cores share so many tasks, for people."""
        return f"{tasks} tasks on {tiling.cores} of {self.request.target.cores.vector} vector cores"

    def started(self, tiling: Tiling) -> tuple[KernelBuilder, TaskWriter]:
        """A kernel that has loaded what all its tasks need."""
        b = self.request.builder("vector", tiling.cores)
        arguments = dict(zip((*self.request.inputs, *self.request.outputs), b.arguments, strict=True))
        tile = self.tile(b, arguments, tiling)
        tile.load_kept()
        return b, tile

    def tiling_in(self, tree: Tree) -> Tiling:
        """The tiling that a tree says. Raises Unlike for a tree that is none of tasks."""
        tiling = tiling_in(tree, self.axes, self.request.target)
        if tiling is not None and not tiling.equal:
            tiling = self.cost.on_cores(tiling)
        meant = tree_of(self.model, self.axes, tiling) if tiling is not None else None
        if tiling is None or meant is None or meant.body != tree.body:
            notes = tuple(to_lines(meant)) if meant is not None else ()
            raise Unlike("tasks run each statement over their whole tile, in order", notes)
        return tiling


@dataclass(frozen=True)
class StatementsInUB(TiledKernel):
    """Statements over the same axes."""

    @cached_property
    def _plain(self) -> tuple[KernelModel, Axes]:
        """The kernel that tasks compute; its axes have the same numbers."""
        return simplified(self.model, self.axes)

    @cached_property
    def cost(self) -> Cost:
        return Cost(*self._plain, self.request.target)

    @cached_property
    def _parts(self) -> tuple[Chunked, Chunked] | None:
        """How a reduction runs chunk by chunk: of the kernel that tasks compute, and of its statements in trees."""
        outputs = self.request.outputs
        parts = chunked(self._plain[0], outputs, self._plain[1])
        said = None if parts is None else chunked_along(self.model, outputs, self.axes, parts.axis)
        return None if parts is None or said is None else (parts, said)

    def trees(self) -> Iterator[Tree]:
        """Tiles with two buffers, chunks of a reduction over more than UB holds, tiles with one buffer."""
        yield from self._tiled(double=True)
        if self._parts is not None:
            found = chunk_tilings(self.axes, self._parts[0], self.request.target)
            yield from (tree_of_chunks(self.model, self.axes, tiling, self._parts[1]) for tiling in found)
        yield from self._tiled(double=False)

    def _tiled(self, *, double: bool) -> Iterator[Tree]:
        model, axes = self._plain
        found = tilings(model, self.request.outputs, axes, self.request.target, double=double)[:TRIES]
        trees = (tree_of(self.model, self.axes, tiling) for tiling in found)
        return (tree for tree in trees if tree is not None)

    def tile(self, b: KernelBuilder, arguments: Mapping[int, Buffer], tiling: Tiling) -> TaskWriter:
        chunked = tiling.chunked
        in_place = not chunked and self.cost.stores_in_place(tiling)
        return TaskWriter(b, *self._plain, tiling, arguments, in_place=in_place, chunked=chunked)

    def write(self, tree: Tree) -> DavinciKernelOp:
        tiling = self._chunks_in(tree)
        if tiling is None or self._parts is None:
            return super().write(tree)
        b, tile = self.started(tiling)
        write_chunks(b, tile, self._parts[0])
        return _finished(b, tile)

    def reasons(self, tree: Tree) -> Sequence[str]:
        tiling = self._chunks_in(tree)
        if tiling is None:
            return super().reasons(tree)
        return [f"{self.shared(self.axes.count(tiling.outer), tiling)}, chunks of {tiling.tile}"]

    def _chunks_in(self, tree: Tree) -> Tiling | None:
        """The tiling of chunks that a tree says; None for another tree."""
        size = chunk_in(tree)
        if size is None or self._parts is None:
            return None
        parts, said = self._parts
        tiling = chunk_tiling(self._plain[1], parts, self.request.target, size)
        return tiling if tree_of_chunks(self.model, self.axes, tiling, said).body == tree.body else None


@dataclass(frozen=True)
class WindowsInUB(TiledKernel):
    """Windows for each channel, and what follows: depthwise convolutions and poolings."""

    windows: WindowReduction
    tail: Axes

    @cached_property
    def cost(self) -> WindowCost:
        return WindowCost(self.windows, self.tail, self.request.target)

    def trees(self) -> Iterator[Tree]:
        """Tiles of the sums' rows and columns."""
        cost = self.cost
        possible = dict.fromkeys(t for t in all_tilings(self.request.outputs, self.tail, cost.target) if cost.fits(t))
        predicted = {tiling: cost.cycles(tiling) for tiling in map(cost.on_cores, possible)}
        best = sorted(predicted, key=lambda tiling: (predicted[tiling], tiling.tile))[:TRIES]
        return (tree for t in best if (tree := tree_of(self.model, self.axes, t)) is not None)

    def tile(self, b: KernelBuilder, arguments: Mapping[int, Buffer], tiling: Tiling) -> TaskWriter:
        in_place = self.cost.stores_in_place(tiling)
        return WindowTile(b, self.windows, self.tail, tiling, arguments, in_place=in_place)

    def tiling_in(self, tree: Tree) -> Tiling:
        tiling = super().tiling_in(tree)
        if not self.cost.is_possible(tiling):
            raise Unlike("a task has windows of one image, of all its channels")
        return tiling


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
