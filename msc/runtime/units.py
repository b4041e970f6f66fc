"""Generated C in several translation units, so that a compiler can run on each processor."""

from __future__ import annotations

from dataclasses import dataclass

_UNIT_BYTES = 5000
"""Of kernels, for each unit: takes a compiler several times as long as starting it and reading the opening."""

_UNITS = 6
"""At most, for each processor: a text's length says little of how long it takes, and short units end together."""

_CLOSING = 6
"""So many times as long as the closing are kernels that a compiler takes as long for: it has calls and data alone."""


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
        """The texts of so many units, of about the same work: each next longest piece goes where there is least."""
        pieces = [*((len(kernel), kernel) for kernel in self.kernels), (len(self.closing) // _CLOSING, self.closing)]
        shares, lengths = [list[str]() for _ in range(count)], [0] * count
        for length, piece in sorted(pieces, key=lambda item: item[0], reverse=True):
            least = lengths.index(min(lengths))
            shares[least].append(piece)
            lengths[least] += length
        return ["\n".join((self.opening, *share)) for share in shares]
