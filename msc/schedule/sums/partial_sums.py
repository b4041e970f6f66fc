"""Partial sums: a long f32 sum is a sum of the sums of blocks of its terms, which bounds the rounding error.

Each addition rounds by up to half a unit in the last place of the current sum, so the error of one chain grows with its
length. A partial sum starts at zero and is added to the total at the end of its block: an element takes part in as
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
from msc.schedule.sums.sum_order import Orders, SumLoop, partial_step
from msc.targets.machine import Machine

LONG = 1024
"""Sums of more terms are split: the error of shorter ones is close to that of ONNX Runtime's."""
BLOCK = 256
"""Terms of a block, approximately: 16384 terms are 64 blocks, and the end of one takes a hundredth of its time."""


def with_partial_sums(model: KernelModel, tree: Tree, machine: Machine, orders: Orders | None = None) -> Tree:
    """The tree with long sums of f32 in blocks, whose lengths `orders` may give. Takes a tree with places."""
    for number in long_sums(model):
        for k in range(len(list(_paths(tree.body, number)))):
            each = _Sum(model, tree, number, list(_paths(tree.body, number))[k], machine)
            step = each.step() if orders is None else _step_of(orders, number, k)
            tree = tree if step is None else each.blocked(step)
    return tree


def long_sums(model: KernelModel) -> Sequence[int]:
    """The statements that sum more terms of f32 than one chain may have."""
    found = list[int]()
    for number, statement in enumerate(model.statements):
        target = model.arrays[statement.target]
        is_sum = statement.combine == "add" and (target.kind, target.dtype) == ("internal", "f32")
        if is_sum and prod(statement.extents[d] for d in statement.reduced) > LONG:
            found.append(number)
    return found


def _step_of(orders: Orders, number: int, place: int) -> SumLoop | None:
    """The step that begins partial sums of a statement, in one of the places where it runs."""
    found = orders.get(number, ())
    return partial_step(found[place]) if place < len(found) else None


def without_partial_sums(tree: Tree) -> Tree:
    """The tree without partial sums, and without loops that only begin them."""

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

    def step(self) -> SumLoop | None:
        """The dimension and the iterations of partial sums, if the sum is long."""
        counts = [self._iterations(k) if self._is_summed(loop) else 1 for k, loop in enumerate(self.path)]
        if prod(counts) <= LONG:
            return None
        at = max(k for k in range(len(counts)) if prod(counts[k:]) > 2 * BLOCK)
        loop = self.path[at]
        size = _block_length(counts[at], max(1, BLOCK // prod(counts[at + 1 :]))) * self._lanes(loop)
        dim = self.tree.axis(loop.axis).dims[self.number]
        return SumLoop(dim, size if loop.tile is None else loop.tile, partial=True)

    def blocked(self, step: SumLoop) -> Tree:
        """The tree with partial sums of a step; unchanged if registers and the stack have no room for them."""
        along = [k for k, loop in enumerate(self.path) if self.tree.axis(loop.axis).dims[self.number] == step.dim]
        at = next((k for k in along if (self.path[k].tile or 1) <= step.size), None)
        if at is None:
            return self.tree
        loop, inside = self.path[at], self.path[at + 1 :]
        if step.size > (loop.tile or 1):
            return self._with_place(loop, Loop(loop.axis, Block((loop,)), step.size), (loop, *inside))
        return self._with_place(loop, loop, inside)

    def _with_place(self, old: Loop, new: Loop, inside: Sequence[Loop]) -> Tree:
        """The tree with `new` in the place of `old`, and partial sums in a copy inside, or directly below `new`."""
        if any(place.partial and place.array == self._name for place in new.body.places):
            return self.tree
        copy = next((loop for loop in inside if self._places_in(loop.body)), None)
        if copy is not None:
            places = (replace(p, partial=p.partial or p.array == self._name) for p in copy.body.places)
            return put(self.tree, copy, replace(copy, body=replace(copy.body, places=tuple(places))))
        scope = self._scope(inside)
        if scope is None:
            return self.tree
        places = (*new.body.places, Place(self._name, scope, partial=True))
        return put(self.tree, old, replace(new, body=replace(new.body, places=places)))

    @property
    def _name(self) -> str:
        return array_names(self.model)[self.model.statements[self.number].target]

    def _places_in(self, block: Block) -> bool:
        return any(place.array == self._name for place in block.places)

    def _scope(self, inside: Sequence[Loop]) -> str | None:
        """The scope of partial sums: registers for a register tile, the stack for a row that is there whole."""
        at = len(self.path) - len(inside)
        points = [k for k in range(at, len(self.path)) if not self._is_summed(self.path[k])]
        size = prod(self._left(k) for k in points) * BYTES["f32"]
        is_tile = all(self.path[k].mark in ("unroll", "vector") for k in points)
        scopes = [p.scope for block in self._around(at) for p in block.places if p.array == self._name]
        if not is_tile or not scopes:
            return None
        if size <= self.machine.register_file:
            return "register"
        return "stack" if scopes[-1] == "stack" and size <= self.machine.l1 // 4 else None

    def _around(self, at: int) -> Sequence[Block]:
        """The blocks around a loop of the path."""
        return [self.tree.body, *(loop.body for loop in self.path[:at])]

    def _is_summed(self, loop: Loop) -> bool:
        return self.tree.axis(loop.axis).dims[self.number] in self.model.statements[self.number].reduced

    def _iterations(self, at: int) -> int:
        """The dependent additions of a loop: those to the same lane of a vector."""
        loop = self.path[at]
        return ceil(self._left(at) / ((loop.tile or 1) * self._lanes(loop)))

    def _left(self, at: int) -> int:
        """The iterations of an axis in the tile of the loops around."""
        axis = self.path[at].axis
        tiles = [loop.tile for loop in self.path[:at] if loop.axis == axis]
        return (tiles[-1] if tiles else None) or self.tree.axis(axis).extent

    def _lanes(self, loop: Loop) -> int:
        """The independent sums of a loop: in lanes, and in several vectors to hide the latency of an addition."""
        return self.machine.lanes(BYTES["f32"]) * self.machine.chains if loop.mark == "vector" else 1


def _block_length(iterations: int, wanted: int) -> int:
    """Iterations of a block: about `wanted`, and the same in all blocks if possible."""
    lengths = [n for n in range((wanted + 1) // 2, 2 * wanted + 1) if iterations % n == 0]
    return min(lengths, key=lambda n: abs(n - wanted)) if lengths else wanted
