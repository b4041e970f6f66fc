"""How a box is cut into tiles for UB, and what a tile costs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import prod

from msc.schedule.copies.boxes import Box, BoxAxis
from msc.targets.davinci import DavinciTarget
from msc.targets.davinci_isa import BLOCK_BYTES, DTYPES, LANE_ELEMENTS, MOST_BURSTS

_UNIT = BoxAxis(1, 1, 1)
_WIDEST_STRIDE = 16
"""Elements between neighbours up to which a row with strides is brought whole."""


@dataclass(frozen=True)
class BoxTile:
    """`rows` x `lanes` elements of a box: bursts of `lanes` neighbours each are written.

    `form` says how they come: `straight`, rows as they are written; `turned`, lanes are the bursts that are read and
    rows are contiguous there; `strided`, a row is brought with all that lies between its elements. In these two
    `vgather` puts elements where they belong. Of a `gathered` one an index chooses each row, which is a move of its
    own. A `double` one has two buffers for inputs and outputs.
    """

    box: Box
    form: str
    row: BoxAxis
    lane: BoxAxis
    rows: int
    lanes: int
    double: bool = True

    @property
    def bytes(self) -> int:
        """Bytes of an element."""
        return DTYPES[self.box.dtype]

    @property
    def gathers(self) -> bool:
        """Whether elements change their order."""
        return self.form in ("turned", "strided")

    @property
    def computed(self) -> str:
        """The type in which elements are gathered: vgather has none of one byte."""
        return "f16" if self.bytes == 1 else self.box.dtype

    @property
    def unit(self) -> int:
        """Elements that fill a block of 32 bytes, in the element type and in the type of gathering."""
        return BLOCK_BYTES // self.bytes

    @cached_property
    def outer(self) -> tuple[BoxAxis, ...]:
        """The axes of which a tile has one element each."""
        return tuple(axis for axis in self.box.axes if axis is not self.row and axis is not self.lane)

    @property
    def parts(self) -> tuple[int, int]:
        """Tiles along rows and along lanes."""
        return -(-self.row.extent // self.rows), -(-self.lane.extent // self.lanes)

    @property
    def tasks(self) -> int:
        """Tiles of the box."""
        return prod(axis.extent for axis in self.outer) * prod(self.parts)

    @property
    def out_pitch(self) -> int:
        """Elements between rows that are written, in UB."""
        return -(-self.lanes // self.unit) * self.unit

    @property
    def is_read_in_one(self) -> bool:
        """Whether the part of a turned tile that is read has no gaps."""
        return self.form == "turned" and self.rows == self.row.extent == self.lane.read

    @property
    def in_pitch(self) -> int:
        """Elements between bursts that are read, in UB."""
        if self.is_read_in_one:
            return self.rows
        length = self.burst
        return -(-length // self.unit) * self.unit

    @property
    def burst(self) -> int:
        """Elements of a burst that is read."""
        if self.form == "turned":
            return self.rows
        return (self.lanes - 1) * self.lane.read + 1 if self.form == "strided" else self.lanes

    @property
    def steps(self) -> tuple[int, int]:
        """Elements between neighbours along rows and along lanes, where the tile is read, in UB."""
        return (1, self.in_pitch) if self.form == "turned" else (self.in_pitch, self.lane.read)

    @property
    def in_elements(self) -> int:
        """Elements in UB of what is read, as far as any offset goes that is gathered."""
        if not self.gathers:
            return -(-self.rows * self.in_pitch // LANE_ELEMENTS) * LANE_ELEMENTS
        along, across = self.steps
        bursts = self.lanes if self.form == "turned" else self.rows
        reach = (self.rows - 1) * along + (self.out_pitch - 1) * across + 1
        return -(-max(reach, bursts * self.in_pitch) // LANE_ELEMENTS) * LANE_ELEMENTS

    @property
    def out_elements(self) -> int:
        """Elements in UB of what is written."""
        return -(-self.rows * self.out_pitch // LANE_ELEMENTS) * LANE_ELEMENTS

    @property
    def buffers(self) -> int:
        """Buffers of what comes and goes: a constant comes once."""
        return 2 if self.double and self.box.source is not None else 1

    @property
    def ub_bytes(self) -> int:
        """What the tile needs of UB: buffers of what comes and goes, offsets, and elements in another type."""
        if not self.gathers:
            return self.buffers * self.in_elements * self.bytes
        moved = self.buffers * (self.in_elements + self.out_elements) * self.bytes
        return moved + 4 * self.out_elements + 2 * (self.in_elements + self.out_elements) * (self.bytes == 1)


def tiles_of(box: Box, room: int) -> Iterator[BoxTile]:
    """The tiles of a box that fit so many bytes of UB."""
    for form, row, lane in forms_of(box):
        yield from _with_sizes(box, form, row, lane, room)


def forms_of(box: Box) -> Iterator[tuple[str, BoxAxis, BoxAxis]]:
    """The forms that tiles of a box may have, with the axes of rows and of lanes: one form for each such pair."""
    lane = next((axis for axis in box.axes if axis.write == 1), _UNIT)
    if box.chosen is not None and (lane.read != 1 or lane.index):
        lane = _UNIT
    rows = [axis for axis in box.axes if axis is not lane]
    if box.chosen is not None:
        yield from (("gathered", row, lane) for row in (*rows, _UNIT))
        return
    if box.source is None or lane.read == 1:
        yield from (("straight", row, lane) for row in (*rows, _UNIT))
        return
    turned = next((axis for axis in rows if axis.read == 1), None)
    if turned is not None and lane.read > 1:
        yield "turned", turned, lane
    if 1 < lane.read <= _WIDEST_STRIDE:
        yield from (("strided", row, lane) for row in (*rows, _UNIT) if row is not turned)
    if lane.read > 1:
        yield from (("straight", row, _UNIT) for row in (lane, *rows, _UNIT))


def _with_sizes(box: Box, form: str, row: BoxAxis, lane: BoxAxis, room: int) -> Iterator[BoxTile]:
    for lanes in lane.sizes():
        for rows in row.sizes():
            tile = BoxTile(box, form, row, lane, rows, lanes)
            if tile.ub_bytes <= room and can_move(tile):
                yield tile


def can_move(tile: BoxTile) -> bool:
    """Whether one instruction brings the tile, and one writes it."""
    bursts = max(tile.rows, tile.lanes if tile.form == "turned" else 1)
    return bursts <= MOST_BURSTS and _has_gaps(tile)


def _has_gaps(tile: BoxTile) -> bool:
    """Whether bursts follow each other upwards, none within another, in both arrays."""
    reads_up = tile.box.source is None or tile.box.chosen is not None
    if tile.form == "turned":
        reads_up = tile.lane.read >= tile.rows
    elif not reads_up:
        reads_up = tile.rows == 1 or tile.row.read >= tile.burst
    return reads_up and (tile.rows == 1 or tile.row.write >= tile.lanes)


@dataclass(frozen=True)
class TileCycles:
    """Predicted cycles of one tile: MTE2 brings it, the vector unit gathers, MTE3 writes it, and all cores share L2."""

    mte2: float
    vector: float
    mte3: float
    shared: float


def work_of(tile: BoxTile, target: DavinciTarget, cores: int) -> TileCycles:
    """What a tile costs while so many cores move others."""
    gm, vector = target.gm, target.vector
    bursts, rows = (tile.lanes if tile.form == "turned" else tile.rows), tile.rows
    length = tile.burst * tile.bytes
    if tile.is_read_in_one:
        bursts, length = 1, length * bursts
    reading = gm.ub_start + bursts * -(-length // gm.packet) * gm.ub_packet if tile.box.source is not None else 0.0
    if tile.box.chosen is not None:
        each = gm.ub_start + -(-length // gm.packet) * gm.ub_packet
        reading = rows * max(each, target.scalar.cycles_per_element)
    writing = gm.write_start + rows * -(-tile.lanes * tile.bytes // gm.packet) * gm.write_packet
    gathering = 0.0
    if tile.gathers:
        gathering = vector.start + rows * tile.out_pitch / vector.rates["gather"][tile.bytes >= 4]
    moved = 2 * tile.rows * tile.lanes * tile.bytes * min(cores, tile.tasks) / target.shared.l2_mixed
    return TileCycles(reading, gathering, writing, moved)


def cycles(tile: BoxTile, target: DavinciTarget, cores: int) -> float:
    """The predicted cycles of the busiest of `cores`: the slowest of its pipes, and one fill of the pipeline.

    With one buffer of each array the pipes wait for each other.
    """
    work = work_of(tile, target, cores)
    share, each = -(-tile.tasks // cores), work.mte2 + work.vector + work.mte3
    slowest = max(work.mte2, work.vector, work.mte3, work.shared) if tile.double else max(each, work.shared)
    return share * slowest + (each if tile.double else 0.0) + target.gm.write_latency
