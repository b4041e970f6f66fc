"""How a statement is cut into register tiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class StatementTile:
    """How a statement is cut: `rows` are dimensions with their counts, by `width` of dimension `vector`.

    `inner` are the dimensions of its loops below those that it shares with other statements, innermost last.
    """

    rows: tuple[tuple[int, int], ...]
    vector: int | None
    width: int
    inner: tuple[int, ...] = ()
    tail: int = 0
    across: int | None = None
    """The last `tail` of the width run as vectors along this dimension, of the rows or of the inner ones."""
    loops: tuple[int, ...] = ()
    """The dimensions of all loops that run an element at a time, innermost last."""
    blocks: int = 1
    """Blocks of the reduction, between which the sums are in memory."""
    requested: tuple[str, ...] = ()
    """The arrays that each step prefetches, a line at a time."""
    beside: int = 1
    """The statements that run one after the other in its innermost loop."""

    @property
    def cut(self) -> tuple[tuple[int, int], ...]:
        """All dimensions that it cuts, with their sizes."""
        return self.rows if self.vector is None else (*self.rows, (self.vector, self.width))

    def trips(self, extents: Sequence[int]) -> int:
        """The iterations of its innermost loop."""
        below = [d for d in self.inner if d != self.vector]
        return extents[below[-1]] if below else 1
