"""What vectors take whose lanes lie apart in memory, but side by side with those of other vectors of a tile.

Of `count` vectors each has lanes `stride` elements apart, and each begins `step` elements behind the one before.
"""

from __future__ import annotations

from math import log2

from msc.cost.access import Moves

TRANSPOSED = 4
"""Columns that generated code transposes at a time, at least: a form of the code that is the same on every machine."""
INTERLEAVED = (2, 4)
"""How many vectors generated code stores in turn: a form of the code that is the same on every machine."""


def transposed(step: int, count: int, lanes: int) -> Moves | None:
    """To load one of `count` vectors side by side whose lanes lie apart: rows are loaded whole and transposed.

    None where generated code does not do so.
    """
    if not 0 < step <= 2 or count < TRANSPOSED:
        return None
    columns = min(count, lanes)
    return Moves((2 * lanes - columns) / columns, log2(columns))


def interleaved(stride: int, step: int, count: int) -> Moves | None:
    """To store one of `count` vectors whose lanes alternate in memory: shuffles of two vectors join them, each two.

    None where generated code does not do so.
    """
    return Moves(1.0, 2 * log2(count)) if step == 1 and stride == count and count in INTERLEAVED else None
