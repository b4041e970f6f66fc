"""The schedule of a kernel that only moves data: a tile for each box, and how cores share the tiles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from msc.schedule.copies.boxes import Box, BoxAxis
from msc.schedule.copies.tiles import BoxTile, cycles, tiles_of
from msc.targets.davinci import DavinciTarget

_MARGIN = 2048
"""Bytes of UB for the alignment of buffers."""


@dataclass(frozen=True)
class CopyPlan:
    """The tiles of a box. `shared` by cores, each of which takes multiples of `group` tiles, or all one core's."""

    tile: BoxTile
    shared: bool
    group: int = 1

    @property
    def cuts(self) -> list[tuple[int, int | None]]:
        """The dimensions along which tiles follow each other, in order, and how much of each a tile has.

        None: a tile has one element. The last one always has a size.
        """
        tile = self.tile
        found: list[tuple[int, int | None]] = [(d, None) for axis in tile.outer for d, _ in axis.dims]
        for axis, size in ((tile.row, tile.rows), (tile.lane, tile.lanes)):
            found += _cuts(axis, size)
        if found:
            return [*found[:-1], (found[-1][0], found[-1][1] or 1)]
        return list((tile.lane.dims or tile.row.dims)[:1])

    @property
    def is_dealt(self) -> bool:
        """Whether the number of cores follows from predicted cycles, not from the group."""
        return self.shared and (len(self.cuts) > 1 or (self.group == 1 and self.tile.buffers > 1))

    def share(self, cores: int, target: DavinciTarget) -> int:
        """Tiles of a core, of which a tile that is dealt has `cores`."""
        if not self.shared:
            return self.tile.tasks
        if self.is_dealt:
            return -(-self.tile.tasks // cores)
        groups = -(-self.tile.tasks // self.group)
        return self.group * -(-groups // target.cores.vector)


def _cuts(axis: BoxAxis, size: int) -> list[tuple[int, int | None]]:
    if size == axis.extent:
        return []
    position, part = axis.cut_at(size)
    return [*((d, None) for d, _ in axis.dims[:position]), (axis.dims[position][0], part)]


def room_of(boxes: Sequence[Box], target: DavinciTarget) -> int:
    """The bytes of UB that each box has for itself."""
    return (target.buffers.ub - target.buffers.ub_reserved) // len(boxes) - _MARGIN


def ranked(boxes: Sequence[Box], target: DavinciTarget, count: int) -> Iterator[list[CopyPlan]]:
    """Plans of a kernel, the best predicted first: for each number of cores the `count` best tiles of each box."""
    room = room_of(boxes, target)
    fitting = [list(tiles_of(box, room)) for box in boxes]
    if not all(fitting):
        return
    found: list[tuple[float, int, list[BoxTile]]] = []
    for cores in _numbers(target):
        orders = [_best(tiles, target, cores, count) for tiles in fitting]
        for rank in range(max(map(len, orders))):
            tiles = [order[min(rank, len(order) - 1)] for order in orders]
            found.append((*_end(tiles, target, cores), tiles))
    found.sort(key=lambda choice: choice[:2])
    for _, used, tiles in islice(found, count):
        yield [_plan(tile, used) for tile in tiles]


def cores_of(tiles: Sequence[BoxTile], target: DavinciTarget) -> int:
    """How many cores end first with tiles that come two at a time."""
    double = [replace(tile, double=True) for tile in tiles]
    return min(_end(double, target, cores) for cores in _numbers(target))[1]


def _best(tiles: Sequence[BoxTile], target: DavinciTarget, cores: int, count: int) -> list[BoxTile]:
    return sorted(tiles, key=lambda tile: cycles(tile, target, cores))[:count]


def _numbers(target: DavinciTarget) -> list[int]:
    """The numbers of cores that are tried."""
    return sorted({target.cores.vector, *(1 << k for k in range(target.cores.vector.bit_length()))})


def _end(tiles: Sequence[BoxTile], target: DavinciTarget, cores: int) -> tuple[float, int]:
    """The predicted cycles of a kernel, and how many of the cores have work: each core more starts later."""
    used = max(min(cores, -(-tile.tasks // -(-tile.tasks // cores))) for tile in tiles)
    starting = used * target.cores.launch_us * target.clock.mhz
    return starting + sum(cycles(tile, target, cores) for tile in tiles), used


def _plan(tile: BoxTile, cores: int) -> CopyPlan:
    """A tile on so many cores; a core that has one needs one buffer."""
    share = -(-tile.tasks // cores)
    if share == 1:
        tile = replace(tile, double=False)
    plan = CopyPlan(tile, shared=cores > 1)
    return replace(plan, group=share) if plan.shared and len(plan.cuts) == 1 else plan
