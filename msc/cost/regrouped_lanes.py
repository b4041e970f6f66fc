"""Instructions for vectors whose lanes are apart in memory, but adjacent to lanes of other vectors of a tile.

Each of `count` vectors has lanes `stride` elements apart, and begins `step` elements after the one before.
"""

from __future__ import annotations

from math import log2

from msc.cost.access import Moves

TRANSPOSED = 4
"""The fewest columns that generated code transposes at a time, on every machine."""
INTERLEAVED = (2, 4)
"""The numbers of vectors that generated code interleaves, on every machine."""


def transposed(step: int, count: int, lanes: int) -> Moves | None:
    """Instructions to load one of `count` adjacent vectors: whole rows are loaded and transposed.

    None if generated code does not do so.
    """
    if not 0 < step <= 2 or count < TRANSPOSED:
        return None
    columns = min(count, lanes)
    return Moves((2 * lanes - columns) / columns, log2(columns))


def interleaved(stride: int, step: int, count: int) -> Moves | None:
    """Instructions to store one of `count` vectors whose lanes alternate in memory: shuffles join pairs of vectors.

    None if generated code does not do so.
    """
    return Moves(1.0, 2 * log2(count)) if step == 1 and stride == count and count in INTERLEAVED else None
