"""The remaining range of an axis below some of its loops: the iterations of one tile, and the parts of a tiled range.

An axis that ends at a bound over open sizes has a part for each of ever smaller tiles, down to single
iterations: each covers the whole tiles that fit into the rest of the parts before. The number of these tiles is a
parameter (`counts`): isl must not know that a part may have only one, or it would generate a guard instead of a loop.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.ir.affine import AffineConstantExpr, AffineExpr

from msc.poly.affine import simplified
from msc.poly.dependences import isl_expr
from msc.poly.valid_extents import over_symbols

ZERO: AffineExpr = AffineConstantExpr(0)
Count: TypeAlias = tuple[AffineExpr, int, int]
"""How many tiles there are below a bound: the bound, the tile of the loop, and the tile of the part."""


@dataclass(frozen=True)
class Range:
    """Iterations of which `index`, in isl's syntax over `{d}`, lies in [low, high); `size` of them, if that is known.

    `low` and `high` are expressions over the sizes and the counts of tiles. `span`: between which iterations of the
    axis itself they lie; None where calls decide.
    """

    index: str
    low: AffineExpr
    high: AffineExpr
    size: int | None
    span: range | None = None

    @classmethod
    def whole(cls, extent: int, bound: AffineExpr | None) -> Range:
        """The range of an axis that no loop runs over yet."""
        if bound is None:
            return cls("{d}", ZERO, AffineConstantExpr(extent), extent, range(extent))
        return cls("{d}", ZERO, bound, None)

    @property
    def condition(self) -> str:
        """The condition that an iteration is one of these, in isl's syntax."""
        return f"{isl_text(self.low)} <= {self.index} < {isl_text(self.high)}"

    @property
    def is_fixed(self) -> bool:
        """Whether these are one range of the axis, the same in all iterations around."""
        return self.span is not None and len(self.span) == self.size

    def part(self, start: int, size: int) -> Range:
        """`size` of these iterations after the first `start`; of a known number."""
        low = self.low + start
        span = self.span[start : start + size] if self.span is not None and self.is_fixed else self.span
        return Range(self.index, low, low + size, size, span)

    @property
    def row(self) -> str:
        """The number of an iteration among these, in isl's syntax."""
        return self.index if self.low == ZERO else f"{self.index} - ({isl_text(self.low)})"

    def in_tile(self, tile: int) -> Range:
        """The iterations of one tile, counted from its first."""
        index = f"{self.row} - {tile}*floor(({self.row})/{tile})"
        return Range(index, ZERO, AffineConstantExpr(tile), tile, self.span)

    def points(self) -> Steps:
        """The loop over these iterations."""
        return Steps(self.row, ZERO, simplified(self.high - self.low), 1, self.low)

    def tiles(self, tile: int) -> Steps:
        """The loop over their tiles."""
        if tile == 1:
            return Steps(self.index, self.low, self.high, 1, ZERO)
        count = simplified((self.high - self.low) // tile, {})
        return Steps(f"floor(({self.row})/{tile})", ZERO, count, tile, self.low)


NOTHING = Range("0", ZERO, AffineConstantExpr(1), 1)
"""What is left of an axis below its points."""


@dataclass(frozen=True)
class Steps:
    """A loop `for (c = lower; c < upper; c++)` of which c begins with iteration `first + size * c` of a range.

    `row` is the c of an iteration, in isl's syntax.
    """

    row: str
    lower: AffineExpr
    upper: AffineExpr
    size: int
    first: AffineExpr


def isl_text(expr: AffineExpr) -> str:
    """An expression over the sizes and the counts of tiles in isl's syntax."""
    return isl_expr(over_symbols(expr))


def tiled(
    whole: Range, tile: int, bound: AffineExpr | None, counted: Mapping[Count, AffineExpr], *, ragged: bool = False
) -> list[tuple[Range, int]]:
    """The parts that tiles cut a range into, in order, each with its tile: 0 where one tile is all of it.

    Of an open one that is `ragged` the tail is a single tile. `counted` are the parameters for its counts.
    """
    if whole.size is None:
        assert bound is not None
        return _open_parts(whole, tile, bound, counted, ragged=ragged)
    left = whole.size % tile
    full = whole.size - left
    found = [(whole.part(0, full), 0 if full == tile else tile)] if full else []
    return [*found, (whole.part(full, left), 0)] if left else found


def _open_parts(
    whole: Range, tile: int, bound: AffineExpr, counted: Mapping[Count, AffineExpr], *, ragged: bool
) -> list[tuple[Range, int]]:
    found, low = list[tuple[Range, int]](), whole.low
    for each in _smaller(tile, ragged=ragged):
        high = low + counted[bound, tile, each] * each
        found.append((Range(whole.index, low, high, None), each))
        low = high
    return [*found, (Range(whole.index, low, whole.high, None), 0 if ragged else 1)]


def _smaller(tile: int, *, ragged: bool) -> Sequence[int]:
    """A tile, half of it, half of that, and so on above 1; of one whose tail is `ragged` the tile alone."""
    return [tile] if ragged else [tile >> k for k in range(tile.bit_length() - 1)]


def counts(tile: int, bound: AffineExpr, *, ragged: bool = False) -> dict[Count, AffineExpr]:
    """The counts of the tiles of an axis with a bound, and their values over the sizes."""
    found: dict[Count, AffineExpr] = {}
    rest = bound
    for each in _smaller(tile, ragged=ragged):
        found[bound, tile, each] = rest // each
        rest = rest % each
    return found
