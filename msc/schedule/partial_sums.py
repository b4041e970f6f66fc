"""Long sums of f32 a block of their terms at a time: partial sums, which bound the error of rounding.

Each addition rounds by up to half a unit in the last place of what has been added up so far, so that the error of one
chain grows with its length. A block begins at zero and is added to the total when it ends: an element takes part in as
many roundings as a block has terms and a sum has blocks. In f64 no chain is long enough, and integers do not round.
(Halide, TVM: rfactor.)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil, prod

from msc.dialects.element_types import BYTES
from msc.poly.kernel_text import array_names
from msc.poly.model import KernelModel
from msc.poly.schedule_tree.moves import mapped, only_loop, put
from msc.poly.schedule_tree.nodes import Block, Loop, Node, Place, Run, Tree, blocks
from msc.targets.machine import Machine

LONG = 1024
"""Sums of more terms are cut: the error of shorter ones is near that of ONNX Runtime's."""
BLOCK = 256
"""Terms of a block, about: of 16384 terms there are 64 blocks, and the end of a block takes a hundredth of its time."""


def with_partial_sums(model: KernelModel, tree: Tree, machine: Machine) -> Tree:
    """The tree with long sums of f32 in blocks. Takes a tree with places."""
    for number, statement in enumerate(model.statements):
        target = model.arrays[statement.target]
        if statement.combine == "add" and (target.kind, target.dtype) == ("internal", "f32"):
            for k in range(len(list(_paths(tree.body, number)))):
                tree = _Sum(model, tree, number, list(_paths(tree.body, number))[k], machine).blocked()
    return tree


def without_partial_sums(tree: Tree) -> Tree:
    """The tree that adds up each sum as one. Loops that only begin partial sums are gone."""

    def whole(node: Node) -> Node:
        if not isinstance(node, Loop) or not any(place.partial for place in node.body.places):
            return node
        places = tuple(place for place in node.body.places if not place.partial)
        node = replace(node, body=replace(node.body, places=places))
        inner = only_loop(node)
        return inner if inner is not None and inner.axis == node.axis and not node.body.clauses else node

    return mapped(tree, whole)


def _paths(block: Block, statement: int, around: tuple[Loop, ...] = ()) -> Iterator[tuple[Loop, ...]]:
    """The loops around a statement, outermost first, for each place where it runs."""
    for node in block.nodes:
        if isinstance(node, Run) and statement in node.statements:
            yield around
        for each in blocks(node):
            yield from _paths(each, statement, (*around, node) if isinstance(node, Loop) else around)


@dataclass(frozen=True)
class _Sum:
    """A sum of a statement in the loops of a `path` to it."""

    model: KernelModel
    tree: Tree
    number: int
    path: Sequence[Loop]
    machine: Machine

    def blocked(self) -> Tree:
        """The tree with partial sums of a block of terms each, if the sum is long."""
        counts = [self._iterations(k) if self._is_summed(loop) else 1 for k, loop in enumerate(self.path)]
        if prod(counts) <= LONG:
            return self.tree
        at = max(k for k in range(len(counts)) if prod(counts[k:]) > 2 * BLOCK)
        loop, inside = self.path[at], self.path[at + 1 :]
        size = _block_length(counts[at], max(1, BLOCK // prod(counts[at + 1 :]))) * self._lanes(loop)
        if loop.tile is None and size > 1:
            return self._with_place(loop, Loop(loop.axis, Block((loop,)), size), (loop, *inside))
        return self._with_place(loop, loop, inside)

    def _with_place(self, old: Loop, new: Loop, inside: Sequence[Loop]) -> Tree:
        """The tree with partial sums below a loop in the place of another: where registers hold a copy, or right there.

        As it is where registers do not hold what the loops `inside` sum up.
        """
        copy = next((loop for loop in inside if self._places_in(loop.body)), None)
        if copy is not None:
            places = (replace(p, partial=p.partial or p.array == self._name) for p in copy.body.places)
            return put(self.tree, copy, replace(copy, body=replace(copy.body, places=tuple(places))))
        if not self._is_in_registers(inside):
            return self.tree
        places = (*new.body.places, Place(self._name, "register", partial=True))
        return put(self.tree, old, replace(new, body=replace(new.body, places=places)))

    @property
    def _name(self) -> str:
        return array_names(self.model.arrays)[self.model.statements[self.number].target]

    def _places_in(self, block: Block) -> bool:
        return any(place.array == self._name for place in block.places)

    def _is_in_registers(self, inside: Sequence[Loop]) -> bool:
        """Whether what loops sum up is a register tile, of sums that lie further out."""
        at = len(self.path) - len(inside)
        points = [k for k in range(at, len(self.path)) if not self._is_summed(self.path[k])]
        size = prod(self._left(k) for k in points) * BYTES["f32"]
        is_tile = all(self.path[k].mark in ("unroll", "vector") for k in points)
        is_placed = any(map(self._places_in, (self.tree.body, *(loop.body for loop in self.path[:at]))))
        return is_placed and is_tile and size <= self.machine.register_file

    def _is_summed(self, loop: Loop) -> bool:
        return self.tree.axis(loop.axis).dims[self.number] in self.model.statements[self.number].reduced

    def _iterations(self, at: int) -> int:
        """Additions one after the other that a loop does: those to the same lane of a vector."""
        loop = self.path[at]
        return ceil(self._left(at) / ((loop.tile or 1) * self._lanes(loop)))

    def _left(self, at: int) -> int:
        """The iterations that the loops around leave of an axis."""
        axis = self.path[at].axis
        tiles = [loop.tile for loop in self.path[:at] if loop.axis == axis]
        return (tiles[-1] if tiles else None) or self.tree.axis(axis).extent

    def _lanes(self, loop: Loop) -> int:
        """The sums that a loop keeps apart: in lanes, and in several vectors to hide the latency of an addition."""
        return self.machine.lanes(BYTES["f32"]) * self.machine.chains if loop.mark == "vector" else 1


def _block_length(iterations: int, wanted: int) -> int:
    """Iterations of a block: about `wanted`, so that all blocks are of one length where they can be."""
    lengths = [n for n in range((wanted + 1) // 2, 2 * wanted + 1) if iterations % n == 0]
    return min(lengths, key=lambda n: abs(n - wanted)) if lengths else wanted
