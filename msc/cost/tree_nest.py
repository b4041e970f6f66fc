"""The loop nest of a schedule tree, as `traffic` reads it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import ceil

from msc.cost.traffic import CountedLoop, Execution, Nest
from msc.poly.model import KernelModel
from msc.poly.schedule_tree.moves import chain
from msc.poly.schedule_tree.nodes import Block, Cut, Loop, Node, Run, Tree


def nests_of(model: KernelModel, tree: Tree) -> tuple[Nest, ...]:
    """The loops of a tree, outermost first. A cut counts as its head over all iterations: the tail moves as much."""
    steps = {axis.name for axis in tree.axes if any(d in model.statements[s].reduced for s, d in axis.dims.items())}
    return _Walk(tree, steps).block(tree.body, {})


@dataclass(frozen=True)
class _Walk:
    tree: Tree
    steps: Collection[str]
    """Axes of reductions: the points of their blocks run one by one."""

    def block(self, block: Block, left: Mapping[str, int]) -> tuple[Nest, ...]:
        """The nests of a block; `left` is how many points of an axis the tiles around it leave."""
        return tuple(nest for node in block.nodes for nest in self._node(node, left))

    def _node(self, node: Node, left: Mapping[str, int]) -> tuple[Nest, ...]:
        match node:
            case Run():
                return tuple(Execution(number) for number in node.statements)
            case Cut():
                return self.block(node.head, left)
            case Loop(mark="intrinsic") if isinstance(node.body.nodes[0], Loop):
                return self._function(list(chain(node)), left)
            case Loop():
                axis = self.tree.axis(node.axis)
                now = left.get(axis.name, axis.extent)
                size = 1 if node.tile is None else node.tile
                body = self.block(node.body, {**left, axis.name: size})
                in_tile, sums = axis.name in left and node.tile is None, axis.name in self.steps
                is_point = (node.mark in ("vector", "unroll") and node.tile is None) or (in_tile and not sums)
                of_blocks = sums and node.tile is not None
                return (CountedLoop(axis.dims, ceil(now / size), body, is_point, in_tile and sums, of_blocks),)

    def _function(self, loops: Sequence[Loop], left: Mapping[str, int]) -> tuple[Nest, ...]:
        """The loops of a unit that performs several as one: a line of terms at a time for each row and column."""
        body = self.block(loops[-1].body, left)
        axes = [self.tree.axis(loop.axis) for loop in loops]
        trips = [left.get(axis.name, axis.extent) for axis in axes]
        parts = [LINE if axis.name in self.steps and trip > LINE else 1 for axis, trip in zip(axes, trips, strict=True)]
        for axis, part in zip(axes, parts, strict=True):
            body = (CountedLoop(axis.dims, part, body),) if part > 1 else body
        for axis, trip, part in reversed(list(zip(axes, trips, parts, strict=True))):
            body = (CountedLoop(axis.dims, ceil(trip / part), body, axis.name not in self.steps),)
        return body


LINE = 64
"""Terms that a unit reads of a row at a time."""
