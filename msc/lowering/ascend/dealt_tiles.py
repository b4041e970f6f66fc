"""Tiles of a product that cores take in turn: how many cores, and in which order. Plain numbers.

Contiguous parts differ by a row of tiles; what cores take in turn differs by one tile. The order keeps the tiles of a
turn close together, so that cores read the same rows of A and columns of B. (CATLASS: block swizzle.)
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Literal

from xdsl.ir.affine import AffineExpr

from msc.targets.davinci import DavinciTarget


@dataclass(frozen=True)
class Deal:
    """Core after core takes the next tile: bands of `high` tiles along `axis`, in each band what lies across it."""

    cores: int
    axis: Literal["m", "n"]
    high: int

    def place(self, number: AffineExpr, tiles: tuple[int, int]) -> tuple[AffineExpr, AffineExpr]:
        """The row and the column of the tile of a number; `tiles` counts rows and columns."""
        across = tiles[1] if self.axis == "m" else tiles[0]
        inside = number % (self.high * across)
        along = number // (self.high * across) * self.high + inside % self.high
        return (along, inside // self.high) if self.axis == "m" else (inside // self.high, along)


def cores_of(tiles: int, cycles: float, target: DavinciTarget) -> tuple[int, float]:
    """How many cores end first with so many tiles of so many cycles each, and when. Each core starts after the last."""
    each = target.cores.launch_us * target.clock.mhz
    return min(((cores, _end(tiles, cores, cycles, each)) for cores in range(1, min(target.cores.cube, tiles) + 1)),
               key=lambda found: (found[1], found[0]))  # fmt: skip


def _end(tiles: int, cores: int, cycles: float, each: float) -> float:
    turns, more = divmod(tiles, cores)
    return max((cores - 1) * each + turns * cycles, (more - 1) * each + (turns + 1) * cycles if more else 0.0)


def deal_of(tiles: tuple[int, int], base: tuple[int, int], cores: int) -> Deal:
    """The order in which cores bring least in a turn: the edges of its tiles. All bands have one height."""
    rows, columns = tiles

    def brought(deal: Deal) -> int:
        along, across = base if deal.axis == "m" else (base[1], base[0])
        return min(deal.high, cores) * along + ceil(cores / deal.high) * across

    heights = [Deal(cores, "n", high) for high in range(1, columns + 1) if columns % high == 0]
    heights += [Deal(cores, "m", high) for high in range(1, rows + 1) if rows % high == 0]
    return min(heights, key=brought)
