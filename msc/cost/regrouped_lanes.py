"""What vectors take whose lanes lie apart in memory, but side by side with those of other vectors of a tile.

Of `count` vectors each has lanes `stride` elements apart, and each begins `step` elements behind the one before.
"""

from __future__ import annotations

from math import log2

TRANSPOSED = 4
"""Columns that generated code transposes at a time, at least: a form of the code that is the same on every machine."""
INTERLEAVED = (2, 4)
"""How many vectors generated code stores in turn: a form of the code that is the same on every machine."""


def transposed_cost(stride: int, step: int, count: int, lanes: int) -> float:
    """To load one of `count` vectors side by side whose lanes lie apart: rows are loaded whole and transposed."""
    if not 0 < step <= 2 or count < TRANSPOSED:
        return lanes
    columns = min(count, lanes)
    return (2 * lanes - columns) / columns + log2(columns)


def interleaved_cost(stride: int, step: int, count: int, lanes: int) -> float:
    """To store one of `count` vectors whose lanes alternate in memory: shuffles of two vectors join them, each two."""
    return 1.0 + 2 * log2(count) if step == 1 and stride == count and count in INTERLEAVED else lanes
