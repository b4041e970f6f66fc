"""Prefetches of data that register tiles stream from beyond L1 or L2, in the loop around a tile.

The hardware prefetcher follows the stream of a tile, but stops at every page, and is so late that each row of vectors
waits. There are three kinds of request in the loop around the unrolled loops of a tile:

* vectors that this loop reads some iterations later, if L1 does not keep them until they are read again;
* the next panel of an operand that L2 does not hold, while the tiles of other rows read this one;
* the rows of the next tile, if they are one contiguous block: each row would start a new stream.

Each is made if the loads that it takes are predicted to cost less than waiting for memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, prod

from msc.poly.model import KernelModel
from msc.poly.schedule_tree.moves import prefetch
from msc.poly.schedule_tree.nodes import Prefetch, Tree, all_blocks, loops
from msc.schedule.prefetching.nest_reads import NestRead, ReadsOfNest
from msc.schedule.prefetching.prefetch_gain import PrefetchGain
from msc.targets.machine import Machine

WIDEST = 8
"""Vectors in a row of a register tile: longer rows are loops, on every machine."""


def with_tile_prefetches(model: KernelModel, tree: Tree, machine: Machine) -> Tree:
    """The tree with prefetches of what its register tiles stream. Takes a tree with places."""
    if not any(loop.mark == "unroll" for loop in loops(tree)):
        return tree
    search, gain = _Search(ReadsOfNest(model, tree, machine), machine), PrefetchGain.of(model, machine)
    for block, new in dict.fromkeys(search.found()):
        target = list(all_blocks(tree.body))[block]
        asked = prefetch(tree, target, new)
        known = any((p.array, p.axis) == (new.array, new.axis) for p in target.prefetches)
        tree = tree if known or not gain.pays(tree, asked, (new.array,)) else asked
    return tree


@dataclass(frozen=True)
class _Search:
    nest: ReadsOfNest
    machine: Machine

    def found(self) -> Iterator[tuple[int, Prefetch]]:
        """The numbers of blocks, and what each prefetches."""
        for read in self.nest.reads(self.nest.nests, self.nest.around):
            if read.tile and read.outer and read.outer[-1].loop.kind == "sequential":
                yield from self._of_tile(read)

    def _of_tile(self, read: NestRead) -> Iterator[tuple[int, Prefetch]]:
        loop = read.outer[-1]
        if not self.nest.outlives(read, loop.block):
            return
        if read.lanes == 1:
            yield from self._next_tile(read) if self.nest.is_large(read) else ()
            return
        vector = min(read.lanes, self.machine.lanes(read.size))
        repeated = not all(map(read.distance, read.tile))
        if not repeated or abs(read.distance(loop)) < vector or read.lanes > WIDEST * vector:
            return
        if self.nest.is_large(read):
            yield from self._next_panel(read)
        if self._bytes_until_reuse(read) > self.machine.l1 // 2:
            later = ceil(self.machine.code.prefetch_bytes / (read.elements * read.size))
            if later * read.distance(loop) < prod(self.nest.model.arrays[read.array].shape):
                yield loop.block, self.nest.request(read, loop.block, later)

    def _bytes_until_reuse(self, read: NestRead) -> int:
        """What is read until a loop outside reads the same again."""
        still = next((k for k, step in enumerate(reversed(read.outer)) if not read.distance(step)), len(read.outer))
        moving = read.outer[len(read.outer) - still :]
        return read.elements * read.size * prod(step.trips for step in moving)

    def _next_panel(self, read: NestRead) -> Iterator[tuple[int, Prefetch]]:
        """None where a panel is read once, or lies in pieces."""
        loop, moving = read.outer[-1], [bool(read.distance(step)) for step in read.outer]
        last = next((k for k in reversed(range(len(moving))) if not moving[k]), -1)
        panels = next((k for k in reversed(range(last + 1)) if moving[k]), -1)
        again = read.outer[panels + 1 : last + 1]
        repeated = prod(step.trips for step in again)
        evenly = all(step.iterations.start == 0 for step in (*again, loop)) and read.distance(loop) == read.elements
        if panels >= 0 and repeated > 1 and evenly:
            yield loop.block, self.nest.request(read, read.outer[panels].block, 1)

    def _next_tile(self, read: NestRead) -> Iterator[tuple[int, Prefetch]]:
        """None where the rows of a tile are no block, or the loop over tiles is not right around."""
        rows = [step for step in read.tile if read.distance(step)]
        if len(read.outer) < 2 or len(rows) != 1:
            return
        (row,), (*_, tiles, loop) = rows, read.outer
        follows = read.distance(row) == loop.trips and read.distance(tiles) == loop.trips * row.trips
        if read.distance(loop) == 1 and follows and row.iterations.start == loop.iterations.start == 0:
            yield loop.block, self.nest.request(read, tiles.block, 1)
