"""The neighbours of a schedule, among which `msc tune` searches for a faster one: each differs in one decision.

The decisions are register tiles, the order of the shared loops or of a node's own, the vector loop, the parallel loop
or none, and no prefetches. The list is deterministic; isl decides which of its schedules are legal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from random import Random

from msc.cost.access import block_size, lanes_of, pieces
from msc.cost.prediction import KernelCost
from msc.cost.statement_loops import statement_loops
from msc.poly.dependences import Dependences
from msc.poly.model import KernelModel
from msc.poly.schedule_tree.moves import (
    fuse,
    interchange,
    mark,
    only_loop,
    parallelise,
    uncut,
    without_places,
    without_prefetches,
)
from msc.poly.schedule_tree.nodes import Axis, Loop, ScheduleError, Tree, all_blocks, walk
from msc.poly.schedule_tree.text import to_lines
from msc.schedule.loops.outline import Outline, outline, own_statements
from msc.schedule.loops.vector_axes import can_carry
from msc.schedule.prefetching.prefetches import with_prefetches
from msc.schedule.schedule_kernels import illegal, misplaced
from msc.schedule.storage.places import stored
from msc.schedule.sums.partial_sums import with_partial_sums, without_partial_sums
from msc.schedule.tiles.register_tiles import tiled, vectors_innermost, with_tail_along, without_marks
from msc.schedule.tiles.tiling import MAX_VECTORS
from msc.targets.machine import Machine

_DRAWS = 8
"""How many schedules are drawn until one is legal."""
ROWS = (2, 4, 8, 16, 32)
"""Rows of a tile whose elements nothing accumulates."""


@dataclass(frozen=True)
class Neighbourhood:
    """What is fixed while a kernel's schedules are searched."""

    model: KernelModel
    deps: Dependences
    target: Machine
    threads: int

    def of(self, tree: Tree) -> Iterator[Tree]:
        """The legal schedules next to one, each once, without itself: those first that are predicted to be fastest.

        Predictions do not tell whether to prefetch, which comes last.
        """
        yield from self._legal(tree, (candidate for move in self._moves() for candidate in self._made(move, tree)))
        yield from self._without_prefetches(tree)

    def of_each_kind(self, tree: Tree, count: int) -> Iterator[Tree]:
        """As `of`, but of each kind of decision only the first `count`."""
        first = (p for move in self._moves() for p in islice(self._legal(tree, self._made(move, tree)), count))
        yield from self._legal(tree, first)
        yield from self._without_prefetches(tree)

    def drawn(self, tree: Tree, generator: Random) -> Tree | None:
        """A legal schedule next to one, drawn: first the kind of decision, then which; None if none is found soon."""
        moves = [list(self._made(move, tree)) for move in self._moves()]
        kinds = [found for found in moves if found]
        drawn = (generator.choice(generator.choice(kinds)) for _ in range(_DRAWS if kinds else 0))
        found = next(filter(self._runs, drawn), None)
        return None if found is None else self._completed(found)

    def _made(self, move: Callable[[Outline], Iterator[Tree]], tree: Tree) -> Iterator[Tree]:
        """What a kind of decision makes of the loops of a tree, where these still run over all that is in them."""
        return filter(_runs_over_all, move(outline(uncut(_bare(tree)))))

    def _legal(self, tree: Tree, candidates: Iterator[Tree]) -> Iterator[Tree]:
        known = {tuple(to_lines(_bare(tree))): tree}
        for candidate in candidates:
            known.setdefault(tuple(to_lines(_bare(candidate))), candidate)
        others = list(known.values())[1:]
        for other in sorted(others, key=self._predicted):
            if self._runs(other):
                yield self._completed(other)

    def _completed(self, tree: Tree) -> Tree:
        """The tree with its places, prefetches and partial sums."""
        tree = with_prefetches(self.model, stored(self.model, self.deps, tree, self.target), self.target)
        return with_partial_sums(self.model, tree, self.target)

    def _without_prefetches(self, tree: Tree) -> Iterator[Tree]:
        """The tree that requests nothing ahead, if it is another one."""
        if any(block.prefetches for block in all_blocks(tree.body)):
            yield without_prefetches(tree)

    def _predicted(self, tree: Tree) -> float:
        return self._cost.prediction(tree, self.threads).cycles

    @cached_property
    def _cost(self) -> KernelCost:
        return KernelCost(self.model, self.target)

    def _runs(self, tree: Tree) -> bool:
        found = illegal(self.model, self.deps, tree, self.target.abilities) or misplaced(self.model, tree)
        return found is None

    def _moves(self) -> tuple[Callable[[Outline], Iterator[Tree]], ...]:
        return (
            self._tiles,
            self._vectors,
            self._orders,
            self._inner_orders,
            self._inner_vectors,
            self._parallel,
        )

    def _tiles(self, shape: Outline) -> Iterator[Tree]:
        """Other widths of the vector loop, with other rows of each other shared axis."""
        if shape.vector is None:
            return
        flat = shape.tree
        for axis in shape.shared:
            flat = _flat(flat, axis.name)
        columns = flat.axis(shape.vector)
        for width in self._widths(columns, shape.sums):
            wide = tiled(flat, columns.name, width, "vector")
            yield wide
            for row in shape.shared:
                if row.extent > 1 and row.name != columns.name:
                    for count in self._row_counts(row, width, shape.sums):
                        rows = tiled(wide, row.name, count, "unroll")
                        yield rows
                        yield from self._tails(rows, columns, width, row.name, shape)

    def _tails(self, tree: Tree, columns: Axis, width: int, row: str, shape: Outline) -> Iterator[Tree]:
        """Trees in which the tail of the columns runs along the rows, or along a loop that only a sum has."""
        tail = ((columns.extent - 1) % width + 1) % lanes_of(self.model, self.target)
        alone = (node for node in shape.nodes if len(own_statements(node)) == 1)
        own = [loop.axis for node in alone for loop in shape.own(node) if loop.mark != "vector"]
        for along in (row, *own) if tail else ():
            yield with_tail_along(tree, columns.name, tail, along)

    def _widths(self, axis: Axis, sums: bool) -> list[int]:
        """Blocks that a layout cuts the loop into are kept: vectors of other tiles would lie across them."""
        lanes = lanes_of(self.model, self.target)
        block = max((block_size(self.model.statements[s], d) for s, d in axis.dims.items()), default=0)
        if block:
            return [block]
        widths = [lanes * k for k in range(1, MAX_VECTORS + 1) if lanes * k < axis.extent]
        if not sums or axis.extent <= lanes * MAX_VECTORS:
            widths.append(axis.extent)
        return widths

    def _row_counts(self, axis: Axis, width: int, sums: bool) -> list[int]:
        """As many rows as registers hold; where nothing accumulates, powers of two."""
        lanes, registers = lanes_of(self.model, self.target), self.target.vector_registers
        if not sums:
            return [n for n in ROWS if n <= min(axis.extent, 2 * lanes)]
        limit = (registers - 2) // pieces(width, lanes)
        return list(range(2, min(axis.extent, limit) + 1))

    def _vectors(self, shape: Outline) -> Iterator[Tree]:
        """Vectors along another shared axis, or along loops of the nodes' own."""
        lanes, scalar = lanes_of(self.model, self.target), without_marks(shape.tree, "vector")
        for axis in shape.shared:
            scalar = _flat(scalar, axis.name)
        for axis in shape.shared:
            if axis.name != shape.vector and can_carry(self.model, axis):
                width = axis.extent if axis.extent < 2 * lanes else 2 * lanes
                yield tiled(scalar, axis.name, width, "vector")
        if shape.vector is not None:
            tree = scalar
            flat = outline(scalar)
            for node in flat.nodes:
                own = flat.own(node)
                if own and can_carry(self.model, tree.axis(own[-1].axis)):
                    tree = vectors_innermost(tree, node, own[-1])
            yield tree

    def _orders(self, shape: Outline) -> Iterator[Tree]:
        """Two neighbours of the band change places; a parallel loop stays outermost."""
        for loop in shape.band:
            inner = only_loop(loop)
            if loop.mark != "parallel" and any(inner is other for other in shape.band):
                yield from _tried(lambda loop=loop: interchange(shape.tree, loop))

    def _inner_orders(self, shape: Outline) -> Iterator[Tree]:
        """Two neighbours of a node's own loops change places; a vector loop stays innermost."""
        for node in shape.nodes:
            own = shape.own(node)
            for loop in own:
                inner = only_loop(loop)
                if inner is not None and inner.mark != "vector" and any(inner is other for other in own):
                    yield from _tried(lambda loop=loop: interchange(shape.tree, loop))

    def _inner_vectors(self, shape: Outline) -> Iterator[Tree]:
        """Vectors along another of a node's own loops, or none."""
        if shape.vector is not None:
            return
        for node in shape.nodes:
            for loop in shape.own(node):
                if can_carry(self.model, shape.tree.axis(loop.axis)):
                    yield vectors_innermost(shape.tree, node, loop)
            for loop in shape.own(node):
                if loop.mark == "vector":
                    yield mark(shape.tree, loop, "")

    def _parallel(self, shape: Outline) -> Iterator[Tree]:
        """Threads on another loop of the band, which becomes the outermost, or on none."""
        if self.threads == 1:
            return
        alone = without_marks(shape.tree, "parallel")
        yield alone
        for loop in outline(alone).band:
            if alone.axis(loop.axis).extent > (loop.tile or 1) and not loop.mark:
                yield parallelise(alone, loop)


def _runs_over_all(tree: Tree) -> bool:
    """Whether each loop runs over a dimension of every statement in it: not all nodes of a block share its band."""
    return all(
        each.statement in tree.axis(loop.axis).dims for each in statement_loops(tree).values() for loop in each.around
    )


def _bare(tree: Tree) -> Tree:
    """The loops alone, without those of which each iteration only requests something or begins partial sums."""
    return without_places(without_prefetches(without_partial_sums(tree)))


def _tried(move: Callable[[], Tree]) -> Iterator[Tree]:
    try:
        yield move()
    except ScheduleError:
        return


def _flat(tree: Tree, axis: str) -> Tree:
    """The tree with one plain loop over an axis."""
    loops = [node for node in walk(tree.body) if isinstance(node, Loop) and node.axis == axis]
    if len(loops) == 1 and loops[0].mark not in ("vector", "unroll"):
        return tree
    return fuse(tree, axis)
