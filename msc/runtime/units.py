"""Generated C in several translation units, so that a compiler can run on each processor."""

from __future__ import annotations

from dataclasses import dataclass, field

_UNIT_BYTES = 5000
"""Of kernels, for each unit: takes a compiler several times as long as starting it and reading the opening."""

_UNITS = 4
"""At most, for each processor: a text's length says little of how long it takes, and short last units end together."""


@dataclass(frozen=True)
class SplitSource:
    """The C of a program in pieces. Kernels have hidden visibility here, where in one file they are `static`.

    Every unit begins with the `opening`: types, inline functions, declarations of all kernels. The `closing`, which
    stands in one of them, has all state and all that is exported.
    """

    opening: str
    kernels: tuple[str, ...]
    closing: str

    def count(self, processors: int) -> int:
        """Into how many units it pays to divide."""
        if processors == 1:
            return 1
        return max(1, min(_UNITS * processors, len(self.kernels), sum(map(len, self.kernels)) // _UNIT_BYTES))

    def units(self, processors: int) -> list[str]:
        """The texts of the units, the longest first: each next longest piece goes where there is most room.

        Each processor compiles one unit of each length, and short ones at the end.
        """
        rounds = -(-self.count(processors) // processors)
        shares = [_Share(rounds - k // processors) for k in range(self.count(processors))]
        for piece in sorted((*self.kernels, self.closing), key=len, reverse=True):
            min(shares, key=lambda share: share.filled(piece)).pieces.append(piece)
        return ["\n".join((self.opening, *share.pieces)) for share in shares]


@dataclass(frozen=True)
class _Share:
    """What one unit gets of the pieces: so many parts of their length."""

    parts: int
    pieces: list[str] = field(default_factory=list[str])

    def filled(self, piece: str) -> float:
        """How full it is with another piece."""
        return (sum(map(len, self.pieces)) + len(piece)) / self.parts
