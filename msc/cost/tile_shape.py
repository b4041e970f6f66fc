"""One register tile: what it reads in a step, and how many instructions of each kind that takes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import prod

from msc.cost.access import Moves


@dataclass(frozen=True)
class TileRead:
    """A read under one tile: which rows it moves along, and what loads one vector."""

    array: int
    rows: tuple[bool, ...]
    again: tuple[int, ...]
    """By how many steps of the innermost loop each row is ahead of the one before it; 0 if they never meet."""
    along: bool
    loads: Moves
    across: float
    """Instructions to load one vector along the rows."""
    split: float
    """What vectors that lie in two lines take more, as a part of the loads."""

    def times(self, counts: tuple[int, ...]) -> int:
        """How often a step needs it."""
        return prod(n for n, moves in zip(counts, self.rows, strict=True) if moves)

    def distinct(self, counts: tuple[int, ...], trips: int) -> int:
        """How many different ones `trips` steps need."""
        saved = (rows * (n - 1) * (trips - s) for rows, n, s in self._met(counts, trips))
        return self.times(counts) * trips - max(saved, default=0)

    def live(self, counts: tuple[int, ...], trips: int) -> int:
        """How many of those wait at a time for a later step."""
        waiting = (
            (rows * (n - 1) * (trips - s), rows * (n - 1) * min(s, trips - s))
            for rows, n, s in self._met(counts, trips)
        )
        return max(waiting, default=(0, 0))[1]

    def _met(self, counts: tuple[int, ...], trips: int) -> Iterator[tuple[int, int, int]]:
        """For dimensions whose rows read what others read before: rows of all others, their count, steps between."""
        all_rows = self.times(counts)
        return ((all_rows // n, n, s) for n, s in zip(counts, self.again, strict=True) if 0 < s < trips)


@dataclass(frozen=True)
class TileShape:
    """A tile, whole or what is left of one: how many of each row dimension, by so many vectors."""

    counts: tuple[int, ...]
    vectors: int
    width: int
    tail: int
    of_rows: int
    """Vectors along the rows for each column of the tail."""
    issued: float
    """What a row takes of the units, in whole vectors: the last one may be narrow."""
    issued_of_rows: float
    """The same of vectors along the rows, for each column of the tail."""
    part: float
    """What an element takes of a unit."""
    lanes: int

    @cached_property
    def rows(self) -> int:
        return prod(self.counts)

    @cached_property
    def registers(self) -> int:
        return self.rows * self.vectors + self.more

    @cached_property
    def operations(self) -> float:
        """Whole vectors that units work on."""
        return self.rows * self.issued + self.tail * self.issued_of_rows

    @property
    def more(self) -> int:
        """Vectors along the rows."""
        return self.tail * self.of_rows

    def of_tails(self, access: TileRead) -> float:
        """Instructions to load what the columns of the tail read."""
        if not any(access.rows):
            return self.tail * access.along * bool(self.of_rows)
        return access.across * (self.more if access.along else self.of_rows)

    def instructions(self, access: TileRead) -> float:
        """To load all that it reads, what rows have in common once."""
        return access.times(self.counts) * self.of_a_row(access)

    def of_a_row(self, access: TileRead) -> float:
        """To load what one row reads."""
        return self.moves(access.loads.memory) * (1 + access.split) if access.along else 1.0

    def shuffled(self, moves: Moves) -> float:
        """Shuffles of whole vectors for what one row loads or stores: a single lane takes a part of a unit."""
        whole, rest = divmod(self.width, self.lanes)
        joined = max(0, self.width - self.vectors) * self.part
        return min(whole * moves.shuffles + max(0, rest - 1) * self.part, joined) if moves.shuffles else 0.0

    def moves(self, instructions: float) -> float:
        """For all lanes of a row, at so many a vector. Lanes apart are moved one by one, and so are those of a part."""
        if instructions <= 1:
            return self.issued
        whole, rest = divmod(self.width, self.lanes)
        return min(whole * instructions + rest * self.part, max(self.width, self.vectors) * self.part)
