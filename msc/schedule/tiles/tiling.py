"""Register tiles: how many elements of two band dimensions one iteration of the reduction holds in vector registers.

For a tile of `rows` times `width`, the inner iteration does one vector multiply-add for each accumulator. It loads an
operand that varies along the vectors once for each vector, and one that varies along the rows once for each row. The
model takes the largest of the arithmetic, the loads (two in each cycle), the stream from L2 if the panel of vectors
exceeds L1, and the latency of a chain of dependent additions. Rows that map to few sets of L1 come from L2 in each
step.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import nsmallest
from itertools import product
from math import prod
from typing import TypeAlias

from msc.cost.access import block_size, cuts, pieces, strides, vector_moves
from msc.cost.register_tiles import MUCH_LESS, SPARE_REGISTERS, holds_wide_tiles, rows_kept, wide_nr
from msc.dialects.element_types import BYTES
from msc.poly.buffers import steps_along, takes_all
from msc.poly.model import KernelModel, KernelStatement
from msc.schedule.tiles.packing import packing_copies
from msc.targets.machine import Machine

MAX_VECTORS = 8
"""Vectors in a row of a tile: wider ones only grow the code, on every machine."""


@dataclass(frozen=True)
class RegisterTile:
    """`rows`, dimensions with their counts, by `width` of the vector dimension; `cycles` per step and row."""

    rows: tuple[tuple[int, int], ...]
    width: int
    cycles: float
    tail: int = 0
    """How many of the last columns fill no vector, and run as vectors along another dimension."""
    along: int = 0
    """That dimension: the rows, or a reduced one."""

    @property
    def height(self) -> int:
        """All rows of the tile."""
        return prod(count for _, count in self.rows)


_Rows: TypeAlias = tuple[int, ...]
"""Positions among the dimensions that are the rows of a tile."""


def _apart(counts: Sequence[int], rows: Iterable[_Rows]) -> int:
    """How many elements accesses that change with these rows read, in a tile with `counts` of each."""
    return sum(prod(counts[k] for k in each) for each in rows)


@dataclass(frozen=True)
class _Loads:
    """Accesses of the reduction's body that change with both dimensions, the row, the vector, or neither."""

    both: tuple[_Rows, ...] = ()
    """For each such access, the rows that it changes with."""
    row: tuple[_Rows, ...] = ()
    vector: int = 0
    neither: int = 0
    far_row: tuple[_Rows, ...] = ()
    """The accesses that change with the row, to arrays that L2 does not hold."""
    rows_kept: int = 0
    """Rows whose cache lines stay in L1 until they are read whole."""
    column: float = 0
    """Instructions to load all that changes with the row as a vector along the rows."""
    split: int = 0
    """The accesses that change with the vector alone, and whose vectors may cross cache lines."""
    apart: int = 0
    """The accesses that change with the vector alone, and read distant rows from beyond L2 each time."""


def _rank(tile: RegisterTile) -> tuple[float, int]:
    """The order of tiles: the fastest first; of equally fast ones the smallest."""
    return tile.cycles, tile.height * tile.width


@dataclass(frozen=True)
class TileSearch:
    """The search for the tile of one reduction whose lanes run along dimension `vector` of `statement`."""

    model: KernelModel
    statement: KernelStatement
    vector: int
    lanes: int
    target: Machine
    inner: tuple[int, ...] = ()
    """Reduced dimensions along which vectors may be summed: loops over these run no other statement."""
    fresh: frozenset[int] = frozenset()
    """Arrays of which a loop around the kernel passes another part in each iteration."""
    _known: dict[tuple[int, ...], Sequence[RegisterTile]] = field(
        default_factory=dict[tuple[int, ...], Sequence[RegisterTile]], compare=False
    )
    """All possible tiles by the dimensions of their rows."""

    def best(self, rows: tuple[int, ...]) -> RegisterTile:
        """The cheapest tile; `rows` are the dimensions that may be its rows."""
        return self.best_of_each(rows)[0]

    def best_of_each(self, rows: tuple[int, ...], most: int = 1) -> Sequence[RegisterTile]:
        """The `most` cheapest tiles along each of the dimensions `rows`, and without rows.

        The cheapest of all comes first. If one dimension is whole in the tile, a second one may add to its rows. If
        rows of the cheapest tile map to few sets of L1, the result also has a tile whose rows stay there.
        """
        one: list[_Side] = [() if row is None else ((row, self._counts(row)),) for row in (*rows, None)]
        high = self._registers // 2
        whole = [(row, (self.statement.extents[row],)) for row in rows if 1 < self.statement.extents[row] <= high]
        two = [((row, self._counts(row)), first) for first in whole for row in rows if row != first[0]]
        return sorted((tile for side in (*one, *two) for tile in self._cheapest(side, most)), key=_rank)

    def _cheapest(self, side: _Side, most: int) -> Iterator[RegisterTile]:
        """The cheapest tiles, and the cheapest whose rows stay in L1, if that is another one."""
        dims = tuple(dim for dim, _ in side)
        if dims not in self._known:
            self._known[dims] = list(self._candidates(side)) or list(self._least(side))
        tiles, kept = self._known[dims], self._loads(dims).rows_kept
        yield from (best := nsmallest(most, tiles, key=_rank))
        few = [tile for tile in tiles if tile.height <= kept < best[0].height]
        if few and (cheapest := min(few, key=_rank)) not in best:
            yield cheapest

    def whole_row(self, parts: int) -> int | None:
        """How much of a row to sum at once if every element is read once, from beyond L2.

        A register tile would read a few lines of each row, which nothing fetches ahead. Instead, the sums of a whole
        row stay in L1, or those of one of at least `parts` parts that a quarter of L1 holds.
        """
        if block_size(self.statement, self.vector) or not all(map(self._is_streamed, self._reads())):
            return None
        extent, itemsize = self.statement.extents[self.vector], self._itemsize(self.statement.target)
        parts = max(parts, -(-extent * itemsize * 4 // self.target.l1))
        width = -(-extent // (parts * self.lanes)) * self.lanes
        return extent if parts == 1 or width >= extent else width

    @property
    def _registers(self) -> int:
        return self.target.vector_registers

    def _reads(self) -> range:
        return range(1, len(self.statement.accesses()))

    def _is_streamed(self, access: int) -> bool:
        """Whether an access reads an array once, along rows, and the array exceeds L2."""
        array, index = self.statement.accesses()[access]
        whole = index.used_dims() == set(range(len(self.statement.extents)))
        once = whole and self.statement.points <= prod(self.model.arrays[array].shape)
        along = strides(self.model, self.statement, self.vector)[access]
        return once and along == 1 and self.statement.points * self._itemsize(array) > self.target.l2

    def _itemsize(self, array: int) -> int:
        return BYTES[self.model.arrays[array].dtype]

    def _candidates(self, side: _Side) -> Iterator[RegisterTile]:
        extent = self.statement.extents[self.vector]
        dims = tuple(dim for dim, _ in side)
        loads = self._loads(dims)
        block = block_size(self.statement, self.vector)
        for width in [block] if block else self._widths(extent):
            vectors = pieces(width, self.lanes)
            for counts in product(*(counts for _, counts in side)):
                rows = tuple(zip(dims, counts, strict=True))
                if self._fits(counts, vectors, loads) and self._is_box(rows, width):
                    yield RegisterTile(rows, width, self._cycles_a_row(rows, width, loads))
            if len(side) == 1 and self._leaves_tail(width):
                yield from self._with_tail(*side[0], width, loads)

    def _least(self, side: _Side) -> Iterator[RegisterTile]:
        """The narrowest tile without rows, which is there even if registers do not hold it."""
        if not side:
            width = block_size(self.statement, self.vector) or min(self._widths(self.statement.extents[self.vector]))
            yield RegisterTile((), width, self._cycles_a_row((), width, self._loads(())))

    def _fits(self, counts: Sequence[int], vectors: int, loads: _Loads) -> bool:
        """Whether registers hold the sums, and operands that multiply-adds of a step or of the next steps share."""
        sums = prod(counts) * vectors
        if any(len(rows) == len(counts) for rows in loads.both):
            # C compilers keep values there that the next step of a depthwise convolution reads again
            spare = self._registers - self.target.code.spare_registers
            return sums <= max(self.target.sums_in_flight, spare // 2)
        if loads.both:
            return self._holds(sums, vectors * _apart(counts, loads.both) + _apart(counts, loads.row))
        return self._holds(sums, min(vectors, prod(counts)))

    def _is_box(self, rows: Sequence[tuple[int, int]], width: int) -> bool:
        """Whether the sums of a tile are evenly spaced along each axis: a buffer of them holds no others.

        Between sums of some channels of two groups are those of the first group's other channels.
        """
        inside = {dim: range(size) for dim, size in (*rows, (self.vector, width)) if size > 1}
        along = [steps for steps in steps_along(self.statement.write, inside) if steps]
        return all(
            takes_all({d: c // min(map(abs, steps.values())) for d, c in steps.items()}, inside) for steps in along
        )

    def _holds(self, sums: int, operands: int) -> bool:
        """Whether registers hold sums and operands that several multiply-adds of a step use."""
        return sums + operands + SPARE_REGISTERS <= self._registers

    def _leaves_tail(self, width: int) -> bool:
        """Whether there are more columns than lanes, and the last tile of that width ends with part of a vector."""
        known = self.statement.bound(self.vector) is None
        return known and self.statement.extents[self.vector] > self.lanes and self._last(width)[1] > 0

    def _last(self, width: int) -> tuple[int, int]:
        """Whole vectors of the last tile's columns, and how many columns are left."""
        return divmod((self.statement.extents[self.vector] - 1) % width + 1, self.lanes)

    def _with_tail(self, row: int, counts: Sequence[int], width: int, loads: _Loads) -> Iterator[RegisterTile]:
        """Tiles whose tail columns run as vectors along the rows or a reduced dimension."""
        statement, (whole, tail) = self.statement, self._last(width)
        tiles = (statement.extents[self.vector] - 1) // width
        carriers = [d for d in self.inner if statement.extents[d] >= 2 * self.lanes and not block_size(statement, d)]
        for count, along in product(counts, (row, *carriers)):
            vectors = pieces(width, self.lanes)
            across = tail * (pieces(count, self.lanes) if along == row else count)
            sums = count * whole + across if along == row else max(count * whole, across)
            fits = self._holds(sums, max(1, min(whole, count))) and (not tiles or self._fits((count,), vectors, loads))
            if count > 1 and fits and self._is_box(((row, count),), width):
                before = tiles * self._tile_cycles((count,), vectors, loads, self._streams(width))
                cycles = sum(
                    times * (before + self._tail_cycles(size, row, along, width, loads))
                    for size, times in cuts(statement.extents[row], count)
                )
                cycles /= statement.extents[row]
                if not tiles or cycles * MUCH_LESS < self._cycles_a_row(((row, count),), width, loads):
                    yield RegisterTile(((row, count),), width, cycles, tail, along)

    def _counts(self, row: int) -> Sequence[int]:
        """The numbers of rows along a dimension that registers hold, and that divide a block."""
        counts = range(1, min(self.statement.extents[row], self._registers) + 1)
        block = block_size(self.statement, row)
        return [n for n in counts if block % n == 0] if block else counts

    def _cycles_a_row(self, rows: tuple[tuple[int, int], ...], width: int, loads: _Loads) -> float:
        """Cycles of one reduction step over the whole extents of the tile's dimensions, for each row."""
        streamed, extents = self._streams(width), self.statement.extents
        parts = (cuts(extents[dim], size) for dim, size in (*rows, (self.vector, width)))
        cycles = sum(
            prod(times for _, times in part) * self._part_cycles([size for size, _ in part], loads, streamed)
            for part in product(*parts)
        )
        return (cycles + self._first_reading(rows, width, loads)) / prod(extents[dim] for dim, _ in rows)

    def _first_reading(self, rows: tuple[tuple[int, int], ...], width: int, loads: _Loads) -> float:
        """Cycles of a step that the first tile of rows waits for new data in all panels; others find it in a cache."""
        extent, vectors = self.statement.extents[self.vector], pieces(width, self.lanes)
        if not loads.apart or extent <= width:
            return 0
        lines = loads.apart * vectors * self.target.vector_bytes / self.target.code.row_rate
        counts = [count for _, count in rows]
        return extent / width * max(0, lines - self._tile_cycles(counts, vectors, loads, self._streams(width)))

    def _part_cycles(self, sizes: list[int], loads: _Loads, streamed: bool) -> float:
        *counts, width = sizes
        return self._tile_cycles(counts, pieces(width, self.lanes), loads, streamed)

    def _streams(self, width: int) -> bool:
        """Whether half of L1 does not hold the data that vectors read in all steps."""
        steps = prod(self.statement.extents[d] for d in self.statement.reduced)
        return steps * width * self.target.vector_bytes // self.lanes > self.target.l1 // 2

    def _tail_cycles(self, rows: int, row: int, along: int, width: int, loads: _Loads) -> float:
        """Cycles of one reduction step over the last tile's columns, the tail along the rows or a reduction."""
        whole, tail = self._last(width)
        streamed = self._streams(whole * self.lanes)
        if along != row:
            return (self._tile_cycles((rows,), whole, loads, streamed) if whole else 0) + self._along(
                along, rows, row, tail
            )
        across = pieces(rows, self.lanes)
        cycles = self._tile_cycles((rows,), whole, loads, streamed, tail * across)
        return cycles + (loads.column * across + loads.vector * tail) / self.target.ports.load

    def _along(self, dim: int, rows: int, row: int, tail: int) -> float:
        """Cycles per step of columns that are summed along a reduced dimension, one vector per element of the tile."""
        steps, each = (strides(self.model, self.statement, d)[1:] for d in (dim, row))
        columns = strides(self.model, self.statement, self.vector)[1:]
        loads = sum(
            (rows if a else 1) * (tail if c else 1) * vector_moves(s, self.lanes).memory
            for s, a, c in zip(steps, each, columns, strict=True)
        )
        extent = self.statement.extents[dim]
        far = rows * extent * self.target.vector_bytes // self.lanes > self.target.l1
        lines = rows * self.target.vector_bytes / self.target.code.panel_rate if far else 0
        vectors = max(rows * tail, loads) / self.target.ports.load + lines + self.target.code.step
        return vectors / self.lanes + rows * tail * self.target.latency.reduce_lanes / extent

    def _tile_cycles(self, counts: Sequence[int], vectors: int, loads: _Loads, streamed: bool, more: int = 0) -> float:
        """Cycles of one step of a tile; `more` are multiply-adds besides those of the rows.

        If the core looks ahead to the next tiles, it computes their sums while those of this one wait for one another.
        The few steps of a short reduction have no loop.
        """
        rows = _apart(counts, loads.row)
        sums = prod(counts) * vectors + more
        each = (_apart(counts, loads.both) + loads.vector + loads.split) * vectors + rows + loads.neither
        work = (sums + each) * prod(self.statement.extents[d] for d in self.statement.reduced)
        latency = self.target.latency.multiply_add / max(1.0, self.target.code.window / work)
        arithmetic = max(sums / self.target.ports.arithmetic, latency)
        panels = sum(prod(counts[k] for k in each) for each in loads.both if len(each) < len(counts))
        lines = (loads.vector + panels) * vectors + loads.split
        memory = each / self.target.ports.load
        far = lines * self.target.vector_bytes / self.target.code.panel_rate if streamed else 0
        if rows > loads.rows_kept:
            far += rows
        code = self.target.code
        beside = code.overlap * (memory + far) + code.far_element * _apart(counts, loads.far_row)
        step = code.step if work > code.straight else 0
        return max(arithmetic, memory, far) + beside + step

    def _loads(self, rows: tuple[int, ...]) -> _Loads:
        along = strides(self.model, self.statement, self.vector)[1:]
        across = [strides(self.model, self.statement, row)[1:] for row in rows]
        moves = [tuple(r for r, a in enumerate(across) if a[k]) for k in range(len(along))]
        row = [k for k, v in enumerate(along) if moves[k] and not v]
        column = [k for k, v in enumerate(along) if v and not moves[k]]
        return _Loads(
            tuple(moves[k] for k, v in enumerate(along) if v and moves[k]),
            tuple(moves[k] for k in row),
            len(column),
            sum(not v and not moves[k] for k, v in enumerate(along)),
            tuple(moves[k] for k in row if self._is_far(k)),
            min((self._rows_kept(k, across[r][k], len(column)) for k in row for r in moves[k]), default=0),
            sum(vector_moves(a[k], self.lanes).memory for a in across for k in range(len(along)) if a[k]),
            sum(self._is_split(k) for k in column),
            sum(self._reads_rows_apart(k) for k in column),
        )

    def _widths(self, extent: int) -> list[int]:
        """Widths of tiles; for packed panels only the greatest up to `wide_nr` that fits on the stack.

        Each panel reads all rows, so wide ones read less.
        """
        widths = _widths(extent, self.lanes)
        column = sum(map(self._column_bytes, self._reads()))
        if not column or not holds_wide_tiles(self.target) or self.statement.bound(self.vector) is not None:
            return widths
        wide = [n for n in widths if n <= wide_nr(self.target) * self.lanes]
        return [max([n for n in wide if n * column <= self.target.stack_of_places], default=wide[-1])]

    def _column_bytes(self, read: int) -> int:
        """Bytes of one column of a packed panel; 0 for other reads."""
        array, index = self.statement.accesses()[read]
        copied = {self.model.statements[k].target for k in packing_copies(self.model)}
        if array not in copied or not strides(self.model, self.statement, self.vector)[read]:
            return 0
        rows = (d for d in index.used_dims() if d in self.statement.reduced)
        return prod(self.statement.extents[d] for d in rows) * self._itemsize(array)

    def _is_split(self, read: int) -> bool:
        """Whether vectors may begin at any element, as other dimensions do not move by whole ones; not of locals."""
        if self.model.arrays[self.statement.accesses()[1 + read][0]].kind == "internal":
            return False
        others = [d for d, n in enumerate(self.statement.extents) if d != self.vector and n > 1]
        return any(strides(self.model, self.statement, d)[1 + read] % self.lanes for d in others)

    def _is_far(self, read: int) -> bool:
        array = self.model.arrays[self.statement.accesses()[1 + read][0]]
        return prod(array.shape) * BYTES[array.dtype] > self.target.l2 // 2

    def _reads_rows_apart(self, read: int) -> bool:
        """Whether steps of the reduction read distant rows of new data that L1 does not hold."""
        number = self.statement.accesses()[1 + read][0]
        array = self.model.arrays[number]
        steps = (strides(self.model, self.statement, d)[1 + read] for d in self.statement.reduced)
        far = number in self.fresh and prod(array.shape) * BYTES[array.dtype] > self.target.l1
        return far and min((s for s in steps if s), default=0) >= self.statement.extents[self.vector]

    def _rows_kept(self, read: int, stride: int, streams: int) -> int:
        """How many rows `stride` elements apart fit in L1 together, beside the streams of vectors."""
        array = self.statement.accesses()[1 + read][0]
        return rows_kept(self.target, abs(stride) * self._itemsize(array), streams)


_Side: TypeAlias = tuple[tuple[int, Sequence[int]], ...]
"""Dimensions that may be rows of a tile, with the possible counts of each."""


def _widths(extent: int, lanes: int) -> list[int]:
    """Whole vectors up to MAX_VECTORS, and the whole extent if it is no larger."""
    widths = [lanes * k for k in range(1, MAX_VECTORS + 1) if lanes * k < extent]
    return [*widths, extent] if extent <= lanes * MAX_VECTORS else widths
