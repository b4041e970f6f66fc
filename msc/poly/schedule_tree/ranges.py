"""What is left of an axis below some of its loops: the iterations of one tile, and the parts that a tile cuts it into.

An axis that ends at a bound over the sizes of a call has a part for each of ever smaller tiles, down to single
iterations: each takes what whole tiles fill of what the ones before left. How many tiles end there is a parameter of
its own (`counts`): isl need not know that a part may hold only one, which would make it no loop but a guard.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir.affine import AffineExpr

from msc.poly.dependences import isl_expr
from msc.poly.valid_extents import over_symbols


@dataclass(frozen=True)
class Range:
    """Iterations of which `index`, in isl's syntax over `{d}`, lies in [low, high); `size` of them, if that is known.

    `span`: between which iterations of the axis itself they lie; None where calls decide.
    """

    index: str
    low: str
    high: str
    size: int | None
    span: range | None = None

    @classmethod
    def whole(cls, extent: int, bound: AffineExpr | None) -> Range:
        """Of an axis that no loop runs over yet."""
        if bound is None:
            return cls("{d}", "0", str(extent), extent, range(extent))
        return cls("{d}", "0", isl_expr(over_symbols(bound)), None)

    @property
    def condition(self) -> str:
        """That an iteration is one of these."""
        return f"{self.low} <= {self.index} < {self.high}"

    @property
    def is_fixed(self) -> bool:
        """Whether these are one range of the axis, the same in all iterations around."""
        return self.span is not None and len(self.span) == self.size

    def part(self, start: int, size: int) -> Range:
        """`size` of these iterations after the first `start`; of a known number."""
        low = int(self.low) + start
        span = self.span[start : start + size] if self.span is not None and self.is_fixed else self.span
        return Range(self.index, str(low), str(low + size), size, span)

    @property
    def row(self) -> str:
        """The number of an iteration among these."""
        return self.index if self.low == "0" else f"{self.index} - ({self.low})"

    def tile_row(self, tile: int) -> str:
        """The number of its tile."""
        return f"floor(({self.row})/{tile})"

    def in_tile(self, tile: int) -> Range:
        """The iterations of one tile, counted from its first."""
        return Range(f"{self.row} - {tile}*floor(({self.row})/{tile})", "0", str(tile), tile, self.span)


@dataclass(frozen=True)
class Part:
    """Iterations that run in tiles of `tile`; `single` if one tile is all of them."""

    range: Range
    tile: int
    single: bool = False


def parts(whole: Range, tile: int, bound: AffineExpr | None, *, ragged: bool = False) -> list[Part]:
    """The parts that tiles cut a range into, in order; of an open one that is `ragged` the tail is a single tile."""
    if whole.size is None:
        assert bound is not None
        return _open_parts(whole, tile, bound, ragged=ragged)
    left = whole.size % tile
    full = whole.size - left
    found = [Part(whole.part(0, full), tile, full == tile)] if full else []
    return [*found, Part(whole.part(full, left), left, single=True)] if left else found


def _open_parts(whole: Range, tile: int, bound: AffineExpr, *, ragged: bool) -> list[Part]:
    found, low = list[Part](), whole.low
    for each in _smaller(tile, ragged=ragged):
        high = f"{low} + {each}*{count_name(bound, tile, each)}"
        found.append(Part(Range(whole.index, low, high, None), each))
        low = high
    return [*found, Part(Range(whole.index, low, whole.high, None), 1, single=ragged)]


def _smaller(tile: int, *, ragged: bool) -> Sequence[int]:
    """A tile, half of it, half of that, and so on above 1; of one whose tail is `ragged` the tile alone."""
    return [tile] if ragged else [tile >> k for k in range(tile.bit_length() - 1)]


def counts(tile: int, bound: AffineExpr, *, ragged: bool = False) -> dict[str, AffineExpr]:
    """Isl's parameters that count the tiles of an axis with a bound, and their values over the sizes."""
    found: dict[str, AffineExpr] = {}
    rest = bound
    for each in _smaller(tile, ragged=ragged):
        found[count_name(bound, tile, each)] = rest // each
        rest = rest % each
    return found


def count_name(bound: AffineExpr, tile: int, each: int) -> str:
    """The parameter that counts tiles of `each` iterations below a bound."""
    letters = "".join(c if c.isalnum() else "_" for c in isl_expr(over_symbols(bound)))
    return f"tiles{each}_of_{tile}_in_{letters}"
