"""The prefetches of a schedule: data that the caches do not hold, requested ahead of its use."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from msc.poly.model import KernelModel
from msc.poly.nest import Body, ForLoop, Nest
from msc.poly.schedule_tree.moves import put
from msc.poly.schedule_tree.nodes import Block, Loop, Prefetch, Tree, loops
from msc.poly.storage import Around
from msc.schedule.prefetching.nest_reads import TILE, NestLoop, ReadsOfNest, step_of
from msc.schedule.prefetching.row_prefetches import with_row_prefetches
from msc.schedule.prefetching.tile_prefetches import with_tile_prefetches
from msc.targets.machine import Machine


def with_prefetches(model: KernelModel, tree: Tree, machine: Machine) -> Tree:
    """The tree with prefetches of rows that are read again, and of what register tiles read. Takes one with places."""
    for with_some in (with_row_prefetches, with_tile_prefetches, with_epilogue_prefetches):
        tree = with_some(model, tree, machine)
    return tree


# Prefetches of data that the epilogue of a register tile reads from beyond L2, such as a weight and its momentum.
#
# An epilogue reads a few lines of each row of a tile. The hardware prefetcher detects no stream in them, and the tile
# needs all of them at once after its sums. The loop of the sums therefore runs in tiles, each of which requests a
# share.
LEAST = 16
"""Steps of a sum in a tile: fewer are not worth a loop."""


def with_epilogue_prefetches(model: KernelModel, tree: Tree, machine: Machine) -> Tree:
    """The tree with prefetches of what its epilogues read. Takes a tree with places."""
    if not any(loop.mark == "unroll" for loop in loops(tree)):
        return tree
    nest = ReadsOfNest(model, tree, machine)
    wanted: dict[int, _Requests] = {}
    for block, new in _Search(nest).found(nest.nests, nest.around, (), 0):
        known = wanted.get(block, new)
        wanted[block] = _Requests(new.steps, max(known.rows, new.rows), tuple(dict.fromkeys(known.all + new.all)))
    for block, requests in sorted(wanted.items(), reverse=True):
        tree = _in_parts(tree, nest.loops[block], requests)
    return tree


@dataclass(frozen=True)
class _Requests:
    """What is requested in a loop of sums of so many `steps`, for an epilogue of so many `rows`."""

    steps: int
    rows: int
    all: tuple[Prefetch, ...]

    @property
    def parts(self) -> int | None:
        """As many as rows or a few more; None where no even parts are long enough."""
        most = min(2 * self.rows - 1, self.steps // LEAST)
        return next((n for n in range(self.rows, most + 1) if self.steps % n == 0), None)


def _in_parts(tree: Tree, sums: Loop, requests: _Requests) -> Tree:
    """The tree with a loop of sums in parts, each of which requests a share."""
    if requests.parts is None:
        return tree
    body = Block((sums,), prefetches=requests.all)
    return put(tree, sums, Loop(sums.axis, body, requests.steps // requests.parts * (sums.tile or 1)))


@dataclass(frozen=True)
class _Search:
    nest: ReadsOfNest

    def found(
        self, nests: Sequence[Nest], around: Around, steps: tuple[NestLoop, ...], block: int
    ) -> Iterator[tuple[int, _Requests]]:
        """Loops of sums, by the number of the block that is their body, with what their tile reads after them."""
        sums: NestLoop | None = None
        for nest in nests:
            match nest:
                case Body():
                    yield from self.found(nest.inside, around, steps, nest.block)
                case ForLoop() if nest.kind not in TILE:
                    sums = step_of(nest, around)
                    yield from self.found(nest.body, around.inside(nest), (*steps, sums), block)
                case ForLoop() if sums is not None and sums.is_plain and steps and steps[-1].block == block:
                    yield from self._after(sums, nest, around, steps)
                case _:
                    pass

    def _after(
        self, sums: NestLoop, nest: ForLoop, around: Around, steps: tuple[NestLoop, ...]
    ) -> Iterator[tuple[int, _Requests]]:
        """What a part of an epilogue reads a few lines of each row of, as a share of the loop right around."""
        written, block = self.nest.written((nest,)), steps[-1].block
        for read in self.nest.reads((nest,), around, steps):
            moving = [step for step in read.tile if read.distance(step) and step.trips > 1]
            wide = len(moving) > 1 and read.lanes > self.nest.machine.lanes(read.size)
            late = read.array not in written and self.nest.outlives(read, block)
            if wide and late and self.nest.is_large(read):
                yield sums.block, _Requests(sums.trips, moving[0].trips, (self.nest.request(read, block, 0),))
