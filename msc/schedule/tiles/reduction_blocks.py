"""K-blocking: a loop over blocks of a reduction around loops that read an operand repeatedly.

A panel of an operand that exceeds L2 comes from beyond it for each tile of rows. Its part for one block of the
reduction stays in L2. The sums of all tiles are in memory between blocks; they are copied to registers and back a tile
at a time (`storage`). The cost model decides which loops the blocks enclose, and how long they are. (BLIS: KC.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

from msc.cost.prediction import KernelCost
from msc.poly.dependences import Dependences
from msc.poly.model import KernelModel
from msc.poly.schedule_tree.nodes import Axis, Block, Loop, Node, Tree, below
from msc.poly.schedule_tree.parts import bound_of
from msc.poly.schedule_tree.proof import violated
from msc.poly.schedule_tree.to_isl import to_isl
from msc.schedule.loops.outline import loops_around
from msc.schedule.sums.sum_order import Orders, SumLoop, partial_step
from msc.schedule.tiles.packing import copied_dimension, packing_copies

LEAST_STEPS = 16
"""Steps of a block: with fewer, the sums are loaded and stored too often."""
MOST_BLOCKS = 256
"""The most blocks of a reduction."""
FASTER = 0.9
"""Blocks are taken if they take at most this part of the predicted time without blocks."""


_Nodes: TypeAlias = tuple[Node, ...]


def with_reduction_blocks(
    cost: KernelCost, deps: Dependences, tree: Tree, reasons: list[str], orders: Orders | None = None
) -> Tree:
    """The tree with its heaviest reduction in blocks, if that is predicted to pay. Takes a tree without places.

    Partial sums, whose lengths `orders` gives, begin and end inside a block.
    """
    statements = cost.model.statements
    sums = [k for k, s in enumerate(statements) if s.reduced and cost.model.arrays[s.target].kind == "internal"]
    if not sums:
        return tree
    heaviest = max(sums, key=lambda s: statements[s].points)
    shape = _shape(cost.model, tree, heaviest, _whole_steps(cost, orders or {}, heaviest))
    before = cost.prediction(tree, 1)
    if shape is None or before.memory_cycles < (1 - FASTER) * before.instruction_cycles:
        return tree
    most = FASTER * before.cycles
    if cost.instructions(tree, 1, {heaviest}) >= most:  # blocks save no work of the sum itself
        return tree
    options = [_Option(shape, at, size) for at in shape.outer for size in shape.sizes]
    found = cost.fastest([option.tree for option in options], most)
    best = None if found is None else options[found[0]]
    if best is None or not violated(to_isl(cost.model, best.tree).schedule, deps).is_empty():
        return tree
    reasons.append(f"blocks of {best.size} {shape.reduction.axis} around {best.at.axis}: their operands stay in L2")
    return best.tree


def _whole_steps(cost: KernelCost, orders: Orders, statement: int) -> Sequence[SumLoop]:
    """The steps of a sum that no block may split: partial sums, and terms of one instruction."""
    found = [step for order in orders.get(statement, ()) if (step := partial_step(order)) is not None]
    sum_ = cost.model.statements[statement]
    types = {cost.model.arrays[array].dtype for array, _ in sum_.accesses()}
    units = [u for u in cost.target.units if u.in_registers and types <= {t for each in u.operands for t in each.types}]
    return [*found, *(SumLoop(dim, unit.shape.k) for unit in units for dim in sum_.reduced)]


def _shape(model: KernelModel, tree: Tree, statement: int, whole: Sequence[SumLoop]) -> _Shape | None:
    """The loops around a sum, if its outermost reduction loop runs over the whole axis."""
    path = list(loops_around(tree.body, statement))
    reduced = [
        k for k, n in enumerate(path) if tree.axis(n.axis).dims[statement] in model.statements[statement].reduced
    ]
    if not reduced or path[reduced[0]].mark or path[reduced[0]].tile is not None:
        return None
    shared = max((k for k, loop in enumerate(path) if loop.mark == "parallel"), default=-1)
    loop, axis = path[reduced[0]], tree.axis(path[reduced[0]].axis)
    outer = tuple(each for each in path[shared + 1 : reduced[0]] if not each.mark)
    is_open = bound_of(model, axis, frozenset(axis.dims)) is not None
    alone = set(axis.dims) == {statement} == set(below(loop))
    return _Shape(model, tree, statement, loop, outer, whole) if alone and not is_open else None


@dataclass(frozen=True)
class _Option:
    """A size of blocks, and the loop that they enclose."""

    shape: _Shape
    at: Loop
    size: int

    @cached_property
    def tree(self) -> Tree:
        return self.shape.blocked(self.at, self.size)


@dataclass(frozen=True)
class _Shape:
    """The loop of a `reduction` of a statement, and the loops around it that blocks may enclose, outermost first.

    No block splits one of the steps that are `whole`.
    """

    model: KernelModel
    tree: Tree
    statement: int
    reduction: Loop
    outer: tuple[Loop, ...]
    whole: Sequence[SumLoop] = ()

    @property
    def sizes(self) -> list[int]:
        """Sizes of blocks, which divide the reduction."""
        axis = self.tree.axis(self.reduction.axis)
        steps = [step.size for step in self.whole if step.dim == axis.dims[self.statement]]
        sizes = (axis.extent // n for n in range(2, MOST_BLOCKS + 1) if axis.extent % n == 0)
        return [size for size in sizes if size >= LEAST_STEPS and not any(size % step for step in steps)]

    def blocked(self, at: Loop, size: int) -> Tree:
        """The tree with a loop over blocks of that size around one of the outer loops.

        Nodes in front of the reduction run before all blocks, those after it last. Each block makes copies of its
        operands.
        """
        axes = (each for each in self.tree.axes if each.name not in self._copied)
        tree = replace(self.tree, axes=tuple(self._with_copies(axis) for axis in axes))

        def inside(block: Block) -> Block:
            if any(node is at for node in block.nodes):
                before, middle, after = self._parts(block)
                return Block((*before, Loop(self.reduction.axis, Block(middle), size), *after))
            return Block(tuple(replace(n, body=inside(n.body)) if isinstance(n, Loop) else n for n in block.nodes))

        return replace(tree, body=inside(tree.body))

    def _parts(self, block: Block) -> tuple[_Nodes, _Nodes, _Nodes]:
        """The nodes in front of the blocks, in each of them, and after them."""
        position = next(k for k, n in enumerate(block.nodes) if self.statement in below(n))
        node, first = block.nodes[position], block.nodes[:position]
        copies = tuple(self._along_reduction(n) for n in first if self._is_copy(n))
        first = tuple(n for n in first if not self._is_copy(n))
        before, middle, after = ((), (node,), ()) if node is self.reduction else self._parts_of(node)
        return (*first, *before), (*copies, *middle), (*after, *block.nodes[position + 1 :])

    def _parts_of(self, node: Node) -> tuple[_Nodes, _Nodes, _Nodes]:
        assert isinstance(node, Loop)
        before, middle, after = ((replace(node, body=Block(part)),) if part else () for part in self._parts(node.body))
        return before, middle, after

    @cached_property
    def _copies(self) -> dict[int, int]:
        """The statements that copy an operand, with their dimension that runs along the reduction."""
        dim = self.tree.axis(self.reduction.axis).dims[self.statement]
        found = {k: copied_dimension(self.model, k, self.statement, dim) for k in packing_copies(self.model)}
        return {k: d for k, d in found.items() if d is not None and self._axis_of(k, d).dims == {k: d}}

    def _is_copy(self, node: Node) -> bool:
        return below(node) <= frozenset(self._copies)

    def _axis_of(self, statement: int, dim: int) -> Axis:
        return next(axis for axis in self.tree.axes if axis.dims.get(statement) == dim)

    @cached_property
    def _copied(self) -> set[str]:
        """The axes of copies that the axis of the reduction replaces."""
        return {self._axis_of(k, d).name for k, d in self._copies.items()}

    def _with_copies(self, axis: Axis) -> Axis:
        return replace(axis, dims={**axis.dims, **self._copies}) if axis.name == self.reduction.axis else axis

    def _along_reduction(self, node: Node) -> Node:
        if not isinstance(node, Loop):
            return node
        axis = self.reduction.axis if node.axis in self._copied else node.axis
        return replace(node, axis=axis, body=Block(tuple(map(self._along_reduction, node.body.nodes))))
