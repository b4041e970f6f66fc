"""The loop nest of a schedule tree, as `traffic` reads it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil

from msc.cost.traffic import Loop, Nest, Run
from msc.poly.schedule_tree import nodes
from msc.poly.schedule_tree.nodes import Block, Cut, Node, Tree


def nests_of(tree: Tree) -> tuple[Nest, ...]:
    """The loops of a tree, outermost first. A cut counts as its head over all iterations: the tail moves as much."""
    return _Walk(tree).block(tree.body, {})


@dataclass(frozen=True)
class _Walk:
    tree: Tree

    def block(self, block: Block, left: Mapping[str, int]) -> tuple[Nest, ...]:
        """The nests of a block; `left` is how many points of an axis the tiles around it leave."""
        return tuple(nest for node in block.nodes for nest in self._node(node, left))

    def _node(self, node: Node, left: Mapping[str, int]) -> tuple[Nest, ...]:
        match node:
            case nodes.Run():
                return tuple(Run(number) for number in node.statements)
            case Cut():
                return self.block(node.head, left)
            case nodes.Loop():
                axis = self.tree.axis(node.axis)
                now = left.get(axis.name, axis.extent)
                size = 1 if node.tile is None else node.tile
                body = self.block(node.body, {**left, axis.name: size})
                is_point = node.tile is None and (axis.name in left or node.mark in ("vector", "unroll"))
                return (Loop(axis.dims, ceil(now / size), body, is_point),)
