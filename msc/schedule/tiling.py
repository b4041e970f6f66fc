"""Register tiles: how many elements of two band dimensions one iteration of the reduction keeps in vector registers.

For a tile of `rows` times `width` the inner iteration does one vector multiply-add per accumulator, loads what depends
on the vector dimension once per vector and what depends on the row once per row. The model takes the largest of the
arithmetic, the loads (two of each a cycle), what streams from the second cache when the vectors' panel outgrows the
first, and the latency of a chain of dependent additions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import prod

from msc.poly.model import KernelModel, KernelStatement
from msc.schedule.access import block_size, pieces, strides
from msc.targets.cpu import CpuTarget

FMA_LATENCY = 4
PORTS = 2
L2_BYTES_PER_CYCLE = 24
"""What a core sustains from its second cache, beside other work (measured; the port takes 64)."""
MAX_VECTORS = 8
"""Vectors in a row of a tile: wider ones only grow the code."""


SPARE_REGISTERS = 7
"""Besides accumulators and the vectors of a row: broadcasts that C compilers load ahead; with fewer they spill."""


@dataclass(frozen=True)
class RegisterTile:
    """`rows` of dimension `row` (None: one row) by `width` of the vector dimension; `cycles` a step for one row."""

    row: int | None
    rows: int
    width: int
    cycles: float


@dataclass(frozen=True)
class _Loads:
    """Accesses of the reduction's body that change with both dimensions, the row, the vector, or neither."""

    both: int = 0
    row: int = 0
    vector: int = 0
    neither: int = 0


@dataclass(frozen=True)
class TileSearch:
    """The search for the tile of one reduction whose lanes run along dimension `vector` of `statement`."""

    model: KernelModel
    statement: KernelStatement
    vector: int
    lanes: int
    target: CpuTarget

    def best(self, rows: tuple[int, ...]) -> RegisterTile:
        """The cheapest tile; `rows` are the dimensions that may be the other side of it."""
        candidates = (tile for row in (*rows, None) for tile in self._candidates(row))
        return min(candidates, key=lambda t: (t.cycles, t.rows * t.width))

    def _candidates(self, row: int | None) -> Iterator[RegisterTile]:
        extent, registers = self.statement.extents[self.vector], self.target.vector_registers
        row_extent = self.statement.extents[row] if row is not None else 1
        loads = self._loads(row)
        block = block_size(self.statement, self.vector)
        for width in [block] if block else _widths(extent, self.lanes):
            vectors = pieces(width, self.lanes)
            for rows in self._row_counts(row, row_extent):
                if rows * vectors + min(vectors, rows) + SPARE_REGISTERS <= registers:
                    cycles = self._sweep(row_extent, rows, extent, width, loads) / row_extent
                    yield RegisterTile(row, rows, width, cycles)

    def _row_counts(self, row: int | None, extent: int) -> Iterable[int]:
        """How many rows a tile may have: as registers hold, and no part of a block."""
        counts = range(1, min(extent, self.target.vector_registers) + 1)
        block = block_size(self.statement, row) if row is not None else 0
        return [n for n in counts if block % n == 0] if block else counts

    def _sweep(self, row_extent: int, rows: int, extent: int, width: int, loads: _Loads) -> float:
        """Cycles of one reduction step over the plane of the two dimensions."""
        streamed = self._streams(width)
        return sum(
            row_count * width_count * self._tile_cycles(r, pieces(w, self.lanes), loads, streamed)
            for r, row_count in _cuts(row_extent, rows)
            for w, width_count in _cuts(extent, width)
        )

    def _streams(self, width: int) -> bool:
        """Whether what the vectors read in all steps of the reduction outgrows the first cache."""
        steps = prod(self.statement.extents[d] for d in self.statement.reduced)
        return steps * width * self.target.vector_bytes // self.lanes > self.target.l1 // 2

    def _tile_cycles(self, rows: int, vectors: int, loads: _Loads, streamed: bool) -> float:
        arithmetic = max(rows * vectors / PORTS, FMA_LATENCY)
        memory = (loads.both * rows * vectors + loads.row * rows + loads.vector * vectors + loads.neither) / PORTS
        far = loads.vector * vectors * self.target.vector_bytes / L2_BYTES_PER_CYCLE if streamed else 0
        return max(arithmetic, memory, far) + 0.1 * (memory + far)

    def _loads(self, row: int | None) -> _Loads:
        along = strides(self.model, self.statement, self.vector)[1:]
        across = strides(self.model, self.statement, row)[1:] if row is not None else (0,) * len(along)
        counts = {(True, True): 0, (False, True): 0, (True, False): 0, (False, False): 0}
        for v, r in zip(along, across, strict=True):
            counts[bool(v), bool(r)] += 1
        return _Loads(counts[True, True], counts[False, True], counts[True, False], counts[False, False])


def _widths(extent: int, lanes: int) -> list[int]:
    """Whole vectors up to MAX_VECTORS, and the whole extent where it is that small."""
    widths = [lanes * k for k in range(1, MAX_VECTORS + 1) if lanes * k < extent]
    return [*widths, extent] if extent <= lanes * MAX_VECTORS else widths


def _cuts(extent: int, size: int) -> list[tuple[int, int]]:
    """Tile sizes and how often each occurs."""
    cuts = [(size, extent // size)] if extent >= size else []
    return [*cuts, (extent % size, 1)] if extent % size else cuts
