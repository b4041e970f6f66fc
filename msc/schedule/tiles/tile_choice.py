"""The choice of a reduction's register tile: a model of one step finds the cheapest, predictions choose."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from typing import TypeAlias

from msc.cost.prediction import KernelCost
from msc.cost.statement_loops import statement_loops, tile_of
from msc.cost.statement_tiles import StatementTile
from msc.poly.schedule_tree.nodes import Tree
from msc.schedule.loops.loop_order import FASTER
from msc.schedule.tiles.tiling import RegisterTile, TileSearch

NEAR_TILES = 1.3
"""Predictions compare register tiles within this ratio of the cheapest. It bounds the search on every machine."""
TILES_OF_A_SIDE = 6
"""Predictions compare this many tiles along one dimension. It bounds the search on every machine."""
FASTER_TILE = 0.95
"""Another tile along the same dimension is taken if it has at most this part of the predicted time. The error of the
predictions is larger than the difference between tiles that are so similar. This margin holds for every machine.
"""
MORE_WORK = 1.02
"""Another tile that moves less data may do this many times the work: the time of moves is predicted less well.
This margin holds for every machine.
"""

Reasoned: TypeAlias = tuple[Tree, list[str]]
"""A tree and its reasons."""


@dataclass(frozen=True)
class TileChoice:
    """The choice of a tile with rows along some of `sides`.

    `made` makes the schedule with a tile; None if its instructions alone take the cycles that are given.
    """

    cost: KernelCost
    made: Callable[[RegisterTile, float], Reasoned | None]
    search: TileSearch
    sides: tuple[int, ...]

    def best(self) -> Reasoned:
        """The first of the cheapest tiles along each dimension, or another that is predicted to be faster."""
        cheapest, *others = self._nearest
        first = self.made(cheapest, inf)
        assert first is not None
        faster = self._fastest(others, FASTER * self.cost.prediction(first[0], 1).cycles) if others else None
        return first if faster is None else faster[0]

    def _fastest(self, tiles: Sequence[RegisterTile], most: float) -> tuple[Reasoned, float] | None:
        """The first schedule with one of the tiles that takes the fewest cycles, fewer than `most`, and these."""
        made = [option for tile in tiles if (option := self.made(tile, most)) is not None]
        found = self.cost.fastest([tree for tree, _ in made], most) if made else None
        return None if found is None else (made[found[0]], found[1])

    def faster(self, tree: Tree) -> tuple[Tree, float, list[str]] | None:
        """The fastest schedule with one of the next tiles along each dimension, if it is faster than a tree.

        With its predicted cycles and reasons.
        """
        known, most = self._nearest, FASTER_TILE * self.cost.prediction(tree, 1).cycles
        number = self.search.model.statements.index(self.search.statement)
        loops = tile_of(tree, statement_loops(tree)[number], self.search.statement.reduced, plain=False)
        instructions = self.cost.statements[number].cycles

        def changed(tile: RegisterTile) -> StatementTile:
            across = tile.along if tile.tail else None
            return replace(loops, rows=tile.rows, width=tile.width, tail=tile.tail, across=across)

        work = min(most, MORE_WORK * instructions(loops))
        others = [tile for tile in self._near(TILES_OF_A_SIDE) if tile not in known]
        found = self._fastest([tile for tile in others if instructions(changed(tile)) < work], most)
        return None if found is None else (found[0][0], found[1], found[0][1])

    @cached_property
    def _nearest(self) -> Sequence[RegisterTile]:
        """The cheapest tiles along each dimension."""
        return self._near(1)

    def _near(self, most: int) -> Sequence[RegisterTile]:
        tiles = self.search.best_of_each(self.sides, most)
        return [tile for tile in tiles if tile.cycles <= NEAR_TILES * tiles[0].cycles]


@dataclass(frozen=True)
class Option:
    """A tree with some vectors, and the choice of register tiles for them."""

    vectors: str
    tree: Tree
    of_tiles: Sequence[str] = ()
    tiles: TileChoice | None = None
