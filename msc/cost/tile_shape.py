"""One register tile: the reads of a step, and the instructions of each kind that they take."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import prod

from msc.cost.access import Moves


@dataclass(frozen=True)
class TileRead:
    """A read of one tile: the rows that it moves along, and the instructions that load one vector."""

    array: int
    rows: tuple[bool, ...]
    again: tuple[int, ...]
    """For each row dimension, the steps of the innermost loop until the next row reads the same; 0: never."""
    along: bool
    loads: Moves
    across: float
    """Instructions to load one vector along the rows."""
    split: float
    """Additional loads for vectors that cross lines, as a fraction of all."""
    scalar: float = 1.0
    """The part of a load that one element takes: several terms may come at once."""

    def times(self, counts: tuple[int, ...]) -> int:
        """The number of reads in a step."""
        return prod(n for n, moves in zip(counts, self.rows, strict=True) if moves)

    def distinct(self, counts: tuple[int, ...], trips: int) -> int:
        """The number of different reads in `trips` steps."""
        saved = (rows * (n - 1) * (trips - s) for rows, n, s in self._met(counts, trips))
        return self.times(counts) * trips - max(saved, default=0)

    def live(self, counts: tuple[int, ...], trips: int) -> int:
        """How many of those are live for a later step at a time."""
        waiting = (
            (rows * (n - 1) * (trips - s), rows * (n - 1) * min(s, trips - s))
            for rows, n, s in self._met(counts, trips)
        )
        return max(waiting, default=(0, 0))[1]

    def _met(self, counts: tuple[int, ...], trips: int) -> Iterator[tuple[int, int, int]]:
        """For dimensions whose rows repeat earlier reads: the rows of all others, their count, the steps between."""
        all_rows = self.times(counts)
        return ((all_rows // n, n, s) for n, s in zip(counts, self.again, strict=True) if 0 < s < trips)


@dataclass(frozen=True)
class TileShape:
    """A whole tile or a tail: `counts` are those of its row dimensions, by a number of vectors."""

    counts: tuple[int, ...]
    vectors: int
    width: int
    tail: int
    of_rows: int
    """Vectors along the rows for each column of the tail."""
    issued: float
    """The units that a row occupies, in whole vectors: the last one may be narrow."""
    issued_of_rows: float
    """The same of vectors along the rows, for each column of the tail."""
    part: float
    """The fraction of a vector's units that one element occupies."""
    lanes: int

    @cached_property
    def rows(self) -> int:
        return prod(self.counts)

    @cached_property
    def registers(self) -> int:
        return self.rows * self.vectors + self.more

    @cached_property
    def operations(self) -> float:
        """The units that the tile occupies, in whole vectors."""
        return self.rows * self.issued + self.tail * self.issued_of_rows

    @property
    def more(self) -> int:
        """Vectors along the rows."""
        return self.tail * self.of_rows

    def of_tails(self, access: TileRead) -> float:
        """Instructions to load the reads of the tail's columns."""
        if not any(access.rows):
            return self.tail * access.along * bool(self.of_rows)
        return access.across * (self.more if access.along else self.of_rows)

    def instructions(self, access: TileRead) -> float:
        """Instructions to load all that it reads, shared reads of rows once."""
        return access.times(self.counts) * self.of_a_row(access)

    def of_a_row(self, access: TileRead) -> float:
        """Instructions to load the reads of one row."""
        return self.moves(access.loads.memory) * (1 + access.split) if access.along else access.scalar

    def shuffled(self, moves: Moves) -> float:
        """Shuffles for the loads or stores of one row, in whole vectors: a single lane occupies a part."""
        whole, rest = divmod(self.width, self.lanes)
        joined = max(0, self.width - self.vectors) * self.part
        return min(whole * moves.shuffles + max(0, rest - 1) * self.part, joined) if moves.shuffles else 0.0

    def moves(self, instructions: float) -> float:
        """Loads or stores of a row, at `instructions` per vector. Lanes apart move one by one, as do parts of one."""
        if instructions <= 1:
            return self.issued
        whole, rest = divmod(self.width, self.lanes)
        return min(whole * instructions + rest * self.part, max(self.width, self.vectors) * self.part)
