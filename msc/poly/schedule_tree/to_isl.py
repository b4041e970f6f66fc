"""From a tree to isl's schedule tree, one to one.

A loop becomes a band over the tile or point function of its axis; where it has several parts (`parts`), a sequence of
them stands in front. Nodes side by side become a sequence of filters, a cut a sequence of two ranges.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import islpy as isl

from msc.poly.dependences import parameters, tuple_of, valid_domain
from msc.poly.model import KernelModel
from msc.poly.outer_band import loop_row
from msc.poly.schedule_tree.nodes import Block, Cut, Loop, Node, Place, Run, Tree, all_blocks, below, walk
from msc.poly.schedule_tree.parts import Part, Parts, tile_counts
from msc.poly.schedule_tree.ranges import Range
from msc.poly.schedule_tree.same_loops import of_loops


@dataclass(frozen=True)
class LoopRow:
    """A loop as the proof sees it: `row` gives the iteration of each of `statements`; `above` are the loops around.

    `within` are the instances that run there.
    """

    loop: Loop
    statements: frozenset[int]
    row: isl.MultiUnionPwAff
    above: tuple[isl.MultiUnionPwAff, ...]
    within: isl.UnionSet


@dataclass(frozen=True)
class PlaceRows:
    """The places of block `number`, and the loops around them."""

    number: int
    places: tuple[Place, ...]
    above: tuple[isl.MultiUnionPwAff, ...]
    within: isl.UnionSet


@dataclass(frozen=True)
class Loops:
    """The loops of a tree in isl's form, whatever places it has.

    `blocks` are those in front of which `places` may stand: the number of each, the loops around and the instances.
    """

    tree: Tree
    schedule: isl.Schedule
    rows: tuple[LoopRow, ...]
    blocks: tuple[tuple[int, tuple[isl.MultiUnionPwAff, ...], isl.UnionSet], ...]


@dataclass(frozen=True)
class IslTree:
    """The schedule of a tree, its loops and its places."""

    schedule: isl.Schedule
    loops: tuple[LoopRow, ...]
    places: tuple[PlaceRows, ...]


@dataclass(frozen=True)
class _At:
    """What the loops around a place leave of each axis, by name, their rows, and the instances that run there."""

    within: isl.UnionSet
    ranges: Mapping[str, Range] = field(default_factory=dict[str, Range])
    rows: tuple[isl.MultiUnionPwAff, ...] = ()

    def of(self, instances: isl.UnionSet) -> _At:
        return replace(self, within=self.within.intersect(instances))

    def inside(self, axis: str, left: Range, row: isl.MultiUnionPwAff | None = None) -> _At:
        return replace(self, ranges={**self.ranges, axis: left}, rows=self.rows if row is None else (*self.rows, row))


def to_isl(model: KernelModel, tree: Tree) -> IslTree:
    """The schedule tree of a tree that fits its kernel (`verify`). Raises ScheduleError.

    Trees of the same loops share them: only the first one asks isl.
    """
    return _placed(_loops(model, tree), tree)


@of_loops
def _loops(model: KernelModel, tree: Tree) -> Loops:
    return _Builder(model, tree).result()


def _placed(made: Loops, tree: Tree) -> IslTree:
    """Loops with the places of a tree; its nodes, which have its lines, stand in for those that they were made of."""
    nodes = {id(old): new for old, new in zip(walk(made.tree.body), walk(tree.body), strict=True)}
    rows = tuple(replace(row, loop=node) for row in made.rows if isinstance(node := nodes[id(row.loop)], Loop))
    places = [block.places for block in all_blocks(tree.body)]
    placed = (
        PlaceRows(number, places[number], above, within) for number, above, within in made.blocks if places[number]
    )
    return IslTree(made.schedule, rows, tuple(placed))


class _Builder:
    """Inserts nodes below a node of isl's tree. Every method returns a node at the depth it was given."""

    def __init__(self, model: KernelModel, tree: Tree) -> None:
        self._model, self._tree, self._parts = model, tree, Parts(model, tree)
        first, count = len(model.sizes), len(tile_counts(model, tree))
        self._parameters = parameters(model, [f"n{k}" for k in range(first, first + count)])
        self._ranks = {i: len(s.extents) for i, s in enumerate(model.statements)}
        self._numbers = {id(block): k for k, block in enumerate(all_blocks(tree.body))}
        self._loops = list[LoopRow]()
        self._blocks = list[tuple[int, tuple[isl.MultiUnionPwAff, ...], isl.UnionSet]]()
        self._filters = dict[frozenset[int], isl.UnionSet]()

    def result(self) -> Loops:
        context = isl.Set(f"{self._parameters}{{ : {' and '.join(self._parts.facts())} }}")
        domain = valid_domain(self._model).intersect_params(context)
        schedule = isl.Schedule.from_domain(domain)
        if self._model.statements:
            root = schedule.get_root().child(0)
            schedule = self._block(root, self._tree.body, _At(domain)).get_schedule()
        return Loops(self._tree, schedule, tuple(self._loops), tuple(self._blocks))

    def _block(self, node: isl.ScheduleNode, block: Block, at: _At) -> isl.ScheduleNode:
        self._blocks.append((self._numbers[id(block)], at.rows, at.within))
        filters = [self._statement_filter(below(each)) for each in block.nodes]
        return self._sequence(node, filters, lambda child, k: self._node(child, block.nodes[k], at.of(filters[k])))

    def _node(self, node: isl.ScheduleNode, each: Node, at: _At) -> isl.ScheduleNode:
        if isinstance(each, Run):
            filters = [self._statement_filter(frozenset((s,))) for s in each.statements]
            return self._sequence(node, filters, lambda child, _: child)
        parts = self._parts.of(each, at.ranges)
        if len(parts) == 1:
            return self._part(node, each, parts[0], at)
        filters = [self._range_filter(each, part.range) for part in parts]
        return self._sequence(node, filters, lambda child, k: self._part(child, each, parts[k], at.of(filters[k])))

    def _part(self, node: isl.ScheduleNode, each: Loop | Cut, part: Part, at: _At) -> isl.ScheduleNode:
        if part.steps is None or isinstance(each, Cut):
            return self._block(node, part.body, at.inside(each.axis, part.left))
        depth, axis, numbers = node.get_tree_depth(), self._tree.axis(each.axis), below(each)
        present = {s: self._ranks[s] for s in sorted(numbers)}
        row = isl.MultiUnionPwAff(self._parameters + loop_row(axis.dims, present, part.steps.row))
        self._loops.append(LoopRow(each, numbers, row, at.rows, at.within))
        inside = node.insert_partial_schedule(row).child(0)
        return _back_to(self._block(inside, part.body, at.inside(each.axis, part.left, row)), depth)

    def _sequence(
        self,
        node: isl.ScheduleNode,
        filters: Sequence[isl.UnionSet],
        inside: Callable[[isl.ScheduleNode, int], isl.ScheduleNode],
    ) -> isl.ScheduleNode:
        if len(filters) <= 1:
            return inside(node, 0) if filters else node
        depth = node.get_tree_depth()
        listed = isl.UnionSetList.alloc(node.get_ctx(), len(filters))
        for instances in filters:
            listed = listed.add(instances)
        node = node.insert_sequence(listed)
        for k in range(len(filters)):
            node = _back_to(inside(node.child(k).child(0), k), depth)
        return node

    def _range_filter(self, loop: Loop | Cut, part: Range) -> isl.UnionSet:
        dims, numbers = self._tree.axis(loop.axis).dims, sorted(below(loop))
        pieces = [f"{tuple_of(s, self._ranks[s])} : {part.condition.replace('{d}', f'd{dims[s]}')}" for s in numbers]
        return isl.UnionSet(f"{self._parameters}{{ {'; '.join(pieces)} }}")

    def _statement_filter(self, numbers: frozenset[int]) -> isl.UnionSet:
        if numbers not in self._filters:
            text = "{ " + "; ".join(tuple_of(s, self._ranks[s]) for s in sorted(numbers)) + " }"
            self._filters[numbers] = isl.UnionSet(text)
        return self._filters[numbers]


def _back_to(node: isl.ScheduleNode, depth: int) -> isl.ScheduleNode:
    """The ancestor of `node` at tree depth `depth`."""
    distance = node.get_tree_depth() - depth
    return node.ancestor(distance) if distance else node
