"""What the strategy decides before it is a schedule tree: shared loops, and groups that run inside them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Member:
    """A loop shared by statements: `dims[k]` is the dimension of statement k that it runs over.

    The last `rest` iterations of a vector loop, in its last tile, run as vectors along the tile of the member or the
    inner loop named `along` instead. Threads share a parallel one where it has `least` iterations.
    """

    name: str
    extent: int
    dims: Mapping[int, int]
    tile: int = 1
    vector: bool = False
    parallel: bool = False
    least: int = 0
    rest: int = 0
    along: str = ""


@dataclass(frozen=True)
class Group:
    """Statements that run together, innermost, under `inner` loops."""

    statements: tuple[int, ...]
    inner: tuple[Member, ...] = ()


@dataclass(frozen=True)
class Plan:
    """The decisions for one kernel: `first` runs before the band and outside it."""

    band: tuple[Member, ...]
    groups: tuple[Group, ...]
    first: tuple[Group, ...] = ()

    @property
    def points(self) -> tuple[Member, ...]:
        """Band members with a point loop, in nesting order: the vector one is innermost."""
        tiled = [m for m in self.band if m.tile > 1]
        return tuple(sorted(tiled, key=lambda m: m.vector))

    @property
    def sums(self) -> bool:
        """Whether groups run loops below the tiles, so that what a tile computes should stay in registers."""
        return any(group.inner for group in self.groups)
