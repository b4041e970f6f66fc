"""Register tiles: how many elements of two band dimensions one iteration of the reduction keeps in vector registers.

For a tile of `rows` times `width` the inner iteration does one vector multiply-add per accumulator, loads what depends
on the vector dimension once per vector and what depends on the row once per row. The model takes the larger of the
arithmetic and the load time (two of each a cycle), and never less than the latency of a chain of dependent additions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from msc.poly.model import KernelModel, KernelStatement
from msc.schedule.access import block_size, pieces, strides

FMA_LATENCY = 4
PORTS = 2
MAX_VECTORS = 8
"""Vectors in a row of a tile: wider ones only grow the code."""


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


def best_tile(
    model: KernelModel, statement: KernelStatement, vector: int, rows: tuple[int, ...], lanes: int, registers: int
) -> RegisterTile:
    """The cheapest register tile of a reduction whose lanes run along dimension `vector`."""
    candidates = (
        tile for row in (*rows, None) for tile in _candidates(model, statement, vector, row, lanes, registers)
    )
    return min(candidates, key=lambda t: (t.cycles, t.rows * t.width))


def _candidates(
    model: KernelModel, statement: KernelStatement, vector: int, row: int | None, lanes: int, registers: int
) -> Iterator[RegisterTile]:
    extent = statement.extents[vector]
    row_extent = statement.extents[row] if row is not None else 1
    loads = _loads(model, statement, vector, row)
    block = block_size(statement, vector)
    for width in [block] if block else _widths(extent, lanes):
        for rows in range(1, min(row_extent, registers) + 1):
            vectors = pieces(width, lanes)
            if rows * vectors + min(vectors, rows) + 1 <= registers:
                cycles = _sweep(row_extent, rows, extent, width, lanes, loads) / row_extent
                yield RegisterTile(row, rows, width, cycles)


def _widths(extent: int, lanes: int) -> list[int]:
    """Whole vectors up to MAX_VECTORS, and the whole extent where it is that small."""
    widths = [lanes * k for k in range(1, MAX_VECTORS + 1) if lanes * k < extent]
    return [*widths, extent] if extent <= lanes * MAX_VECTORS else widths


def _sweep(row_extent: int, rows: int, extent: int, width: int, lanes: int, loads: _Loads) -> float:
    """Cycles of one reduction step over the plane of the two dimensions."""
    return sum(
        row_count * width_count * _tile_cycles(r, pieces(w, lanes), loads)
        for r, row_count in _cuts(row_extent, rows)
        for w, width_count in _cuts(extent, width)
    )


def _cuts(extent: int, size: int) -> list[tuple[int, int]]:
    """Tile sizes and how often each occurs."""
    cuts = [(size, extent // size)] if extent >= size else []
    return [*cuts, (extent % size, 1)] if extent % size else cuts


def _tile_cycles(rows: int, vectors: int, loads: _Loads) -> float:
    arithmetic = max(rows * vectors / PORTS, FMA_LATENCY)
    memory = (loads.both * rows * vectors + loads.row * rows + loads.vector * vectors + loads.neither) / PORTS
    return max(arithmetic, memory) + 0.1 * memory


def _loads(model: KernelModel, statement: KernelStatement, vector: int, row: int | None) -> _Loads:
    along = strides(model, statement, vector)[1:]
    across = strides(model, statement, row)[1:] if row is not None else (0,) * len(along)
    counts = {(True, True): 0, (False, True): 0, (True, False): 0, (False, False): 0}
    for v, r in zip(along, across, strict=True):
        counts[bool(v), bool(r)] += 1
    return _Loads(counts[True, True], counts[False, True], counts[True, False], counts[False, False])
