"""Generated C in several translation units, so that a compiler can run on each processor."""

from __future__ import annotations

from dataclasses import dataclass

_UNIT_BYTES = 5000
"""Of kernels, for each unit: takes a compiler several times as long as starting it and reading the opening."""

_UNITS = 6
"""At most, for each processor: a text's length says little of how long it takes, and short units end together."""


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

    def units(self, count: int) -> list[str]:
        """The texts of so many units, of about the same length: each next longest piece goes where there is least."""
        shares: list[list[str]] = [[] for _ in range(count)]
        for piece in sorted((*self.kernels, self.closing), key=len, reverse=True):
            _shortest(shares).append(piece)
        return ["\n".join((self.opening, *share)) for share in shares]


def _shortest(shares: list[list[str]]) -> list[str]:
    return min(shares, key=lambda share: sum(map(len, share)))
