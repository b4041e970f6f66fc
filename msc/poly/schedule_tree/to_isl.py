"""From a tree to isl's schedule tree, one to one.

A loop becomes a band over the tile or point function of its axis, under a mark `kind:name`; where a tile does not
divide what it cuts, a sequence of two parts stands in front, so that every loop has constant bounds and no guard is
ever needed. Nodes side by side become a sequence of filters, a cut a sequence of two ranges. In front of block k, where
its clauses would be, stands the mark `places:k`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import islpy as isl
from xdsl.ir.affine import AffineExpr

from msc.poly.dependences import parameters, tuple_of, valid_domain
from msc.poly.model import KernelModel
from msc.poly.outer_band import loop_row
from msc.poly.remembered import remembered
from msc.poly.schedule_tree.moves import without_places
from msc.poly.schedule_tree.nodes import (
    Axis,
    Block,
    Cut,
    Loop,
    Mark,
    Node,
    Place,
    Run,
    ScheduleError,
    Tree,
    all_blocks,
    below,
    blocks,
    walk,
    with_clauses,
)
from msc.poly.schedule_tree.ranges import Range, counts, parts

PLACES_MARK = "places"
_KINDS: Mapping[Mark, str] = {"": "sequential", "pipeline": "sequential", "intrinsic": "sequential"}
"""How loops run of which the mark says something else."""


@dataclass(frozen=True)
class Row:
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
    """The loops of a tree in isl's form, whatever places it has: every block has its mark.

    `blocks` are those in front of which `places` may stand: the number of each, the loops around and the instances.
    `parameters` are the sizes and the counts of tiles.
    """

    tree: Tree
    schedule: isl.Schedule
    counts: Mapping[str, AffineExpr]
    parameters: tuple[str, ...]
    rows: tuple[Row, ...]
    blocks: tuple[tuple[int, tuple[isl.MultiUnionPwAff, ...], isl.UnionSet], ...]


@dataclass(frozen=True)
class IslTree:
    """The schedule of a tree, its parameters that count tiles with their values, its loops and its places.

    `blocks` are the numbers of those with clauses.
    """

    made: Loops
    loops: tuple[Row, ...]
    places: tuple[PlaceRows, ...]
    blocks: frozenset[int]

    @property
    def schedule(self) -> isl.Schedule:
        return self.made.schedule

    @property
    def counts(self) -> Mapping[str, AffineExpr]:
        return self.made.counts


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


_KEPT = 2
"""Trees of a model whose loops are kept: places are searched, the result is proved, then lowered."""


def to_isl(model: KernelModel, tree: Tree) -> IslTree:
    """The schedule tree of a tree that fits its kernel (`verify`). Raises ScheduleError.

    Trees of the same loops share them: only the first one asks isl.
    """
    bare, known = without_places(tree), _made(model)
    if bare not in known:
        made = _Builder(model, bare).result()
        for oldest in list(known)[: 1 - _KEPT]:
            del known[oldest]
        known[bare] = made
    return _placed(known[bare], tree)


@remembered
def _made(model: KernelModel) -> dict[Tree, Loops]:
    """The loops of trees of a model, by the trees without places; the latest ones."""
    return {}


def _placed(made: Loops, tree: Tree) -> IslTree:
    """Loops with the places of a tree; its nodes, which have its lines, stand in for those that they were made of."""
    nodes = {id(old): new for old, new in zip(walk(made.tree.body), walk(tree.body), strict=True)}
    rows = tuple(replace(row, loop=node) for row in made.rows if isinstance(node := nodes[id(row.loop)], Loop))
    places = [block.places for block in all_blocks(tree.body)]
    placed = (
        PlaceRows(number, places[number], above, within) for number, above, within in made.blocks if places[number]
    )
    return IslTree(made, rows, tuple(placed), with_clauses(tree))


def tile_counts(model: KernelModel, tree: Tree) -> dict[str, AffineExpr]:
    """Isl's parameters that count tiles, and their values over the sizes of the call."""
    found: dict[str, AffineExpr] = {}
    for loop, bound in _open_tiles(model, tree):
        assert loop.tile is not None
        found |= counts(loop.tile, bound, ragged=is_ragged(model, tree, loop))
    return found


def is_ragged(model: KernelModel, tree: Tree, loop: Loop) -> bool:
    """Whether the last tile of a loop may have any number of iterations: plain steps of reductions."""
    dims, inside = tree.axis(loop.axis).dims, (n for n in walk(loop.body) if isinstance(n, Loop))
    points = [each for each in inside if each.axis == loop.axis]
    is_sum = all(dims[s] in model.statements[s].reduced for s in below(loop))
    return is_sum and not any(each.mark or each.tile is not None for each in points)


def _open_tiles(model: KernelModel, tree: Tree) -> Iterable[tuple[Loop, AffineExpr]]:
    """The outermost tile loops over axes with a bound, and the bound."""

    def visit(block: Block, seen: frozenset[str]) -> Iterable[tuple[Loop, AffineExpr]]:
        for node in block.nodes:
            inner = seen
            if isinstance(node, Loop) and node.axis not in seen:
                bound = bound_of(model, tree.axis(node.axis), below(node), node.line)
                inner = seen | {node.axis}
                if bound is not None and node.tile is not None:
                    yield node, bound
            for each in blocks(node):
                yield from visit(each, inner)

    return visit(tree.body, frozenset())


def bound_of(model: KernelModel, axis: Axis, numbers: frozenset[int], line: int = 0) -> AffineExpr | None:
    """Where an axis ends for some statements, if before its extent: the same place for all of them."""
    found = {model.statements[s].bound(d) for s, d in axis.dims.items() if s in numbers}
    if len(found) > 1:
        ends = ", ".join(sorted(map(str, found)))
        raise ScheduleError(f"axis {axis.name} ends at different places: {ends}", line)
    return found.pop() if found else None


class _Builder:
    """Inserts nodes below a node of isl's tree. Every method returns a node at the depth it was given."""

    def __init__(self, model: KernelModel, tree: Tree) -> None:
        self._model, self._tree = model, tree
        self._counts = tile_counts(model, tree)
        self._ranks = {i: len(s.extents) for i, s in enumerate(model.statements)}
        self._numbers = {id(block): k for k, block in enumerate(all_blocks(tree.body))}
        self._loops = list[Row]()
        self._blocks = list[tuple[int, tuple[isl.MultiUnionPwAff, ...], isl.UnionSet]]()
        self._filters = dict[frozenset[int], isl.UnionSet]()

    def result(self) -> Loops:
        domain = valid_domain(self._model).intersect_params(self._context())
        schedule = isl.Schedule.from_domain(domain)
        if self._model.statements:
            root = schedule.get_root().child(0)
            schedule = self._block(root, self._tree.body, _At(domain)).get_schedule()
        names = (*(f"n{k}" for k in range(len(self._model.sizes))), *self._counts)
        return Loops(self._tree, schedule, self._counts, names, tuple(self._loops), tuple(self._blocks))

    def _context(self) -> isl.Set:
        """What isl may know of the parameters: the least sizes, and that tiles end before what they are cut from.

        Of the largest sizes it would know where only one tile fits.
        """
        facts = [f"n{k} >= {size.low}" for k, size in enumerate(self._model.sizes)]
        for loop, bound in _open_tiles(self._model, self._tree):
            assert loop.tile is not None
            ragged = is_ragged(self._model, self._tree, loop)
            cut = parts(Range.whole(0, bound), loop.tile, bound, ragged=ragged)
            facts += [f"{low} <= {high}" for low, high in pairwise(["0", *(part.range.high for part in cut)])]
        return isl.Set(f"{parameters(self._model, tuple(self._counts))}{{ : {' and '.join(facts)} }}")

    def _block(self, node: isl.ScheduleNode, block: Block, at: _At) -> isl.ScheduleNode:
        depth, number = node.get_tree_depth(), self._numbers[id(block)]
        self._blocks.append((number, at.rows, at.within))
        node = node.insert_mark(isl.Id(f"{PLACES_MARK}:{number}", context=node.get_ctx())).child(0)
        filters = [self._statement_filter(below(each)) for each in block.nodes]
        built = self._sequence(node, filters, lambda child, k: self._node(child, block.nodes[k], at.of(filters[k])))
        return _back_to(built, depth)

    def _node(self, node: isl.ScheduleNode, each: Node, at: _At) -> isl.ScheduleNode:
        match each:
            case Loop():
                return self._loop(node, each, at) if each.tile is None else self._tiles(node, each, each.tile, at)
            case Cut():
                return self._cut(node, each, at)
            case Run():
                filters = [self._statement_filter(frozenset((s,))) for s in each.statements]
                return self._sequence(node, filters, lambda child, _: child)

    def _range(self, loop: Loop | Cut, at: _At) -> Range:
        axis = self._tree.axis(loop.axis)
        bound = bound_of(self._model, axis, below(loop), loop.line)
        return at.ranges.get(loop.axis) or Range.whole(axis.extent, bound)

    def _loop(self, node: isl.ScheduleNode, loop: Loop, at: _At) -> isl.ScheduleNode:
        """Over the points that are left; none where that is a single one."""
        whole = self._range(loop, at)
        if whole.size == 1 and loop.axis in at.ranges:
            return self._block(node, loop.body, at)
        return self._band(node, loop, whole.row, at, None)

    def _tiles(self, node: isl.ScheduleNode, loop: Loop, tile: int, at: _At) -> isl.ScheduleNode:
        whole = self._range(loop, at)
        bound = bound_of(self._model, self._tree.axis(loop.axis), below(loop), loop.line)
        cut = parts(whole, tile, bound, ragged=bound is not None and is_ragged(self._model, self._tree, loop))

        filters = [self._range_filter(loop, part.range) for part in cut]

        def of_part(child: isl.ScheduleNode, k: int) -> isl.ScheduleNode:
            part, here = cut[k], at.of(filters[k])
            if part.single:
                return self._block(child, loop.body, here.inside(loop.axis, part.range))
            row = part.range.tile_row(part.tile) if part.tile > 1 else part.range.index
            is_tail = part.tile < tile and len(cut) > 1
            return self._band(child, loop, row, here, part.range.in_tile(part.tile), is_tail=is_tail)

        return self._sequence(node, filters, of_part)

    def _cut(self, node: isl.ScheduleNode, cut: Cut, at: _At) -> isl.ScheduleNode:
        """The head and the tail, as far as this part of the axis has any of them."""
        found = self._halves(cut, self._range(cut, at))
        filters = [self._range_filter(cut, part) for part, _ in found]
        return self._sequence(
            node,
            filters,
            lambda child, k: self._block(child, found[k][1], at.of(filters[k]).inside(cut.axis, found[k][0])),
        )

    def _halves(self, cut: Cut, whole: Range) -> list[tuple[Range, Block]]:
        """What of a range runs the head, and what the tail."""
        if whole.span is not None and (cut.at >= whole.span.stop or cut.at <= whole.span.start):
            return [(whole, cut.head if cut.at >= whole.span.stop else cut.tail)]
        if whole.span is None or whole.size is None or not whole.is_fixed:
            raise ScheduleError(f"axis {cut.axis} cannot be cut here: iteration {cut.at} is in no known tile", cut.line)
        before = cut.at - whole.span.start
        return [(whole.part(0, before), cut.head), (whole.part(before, whole.size - before), cut.tail)]

    def _band(
        self,
        node: isl.ScheduleNode,
        loop: Loop,
        expression: str,
        at: _At,
        left: Range | None,
        *,
        is_tail: bool = False,
    ) -> isl.ScheduleNode:
        """The tail of an open axis, which is less than a tile, is not shared."""
        depth, axis, numbers = node.get_tree_depth(), self._tree.axis(loop.axis), below(loop)
        present = {s: self._ranks[s] for s in sorted(numbers)}
        text = parameters(self._model, tuple(self._counts)) + loop_row(axis.dims, present, expression)
        row = isl.MultiUnionPwAff(text)
        self._loops.append(Row(loop, numbers, row, at.rows, at.within))
        kind = "sequential" if is_tail and loop.mark == "parallel" else _KINDS.get(loop.mark, loop.mark)
        kind += f" {loop.least}" if loop.least and not is_tail else ""
        mark = isl.Id(f"{kind}:{label(loop.axis)}", context=node.get_ctx())
        marked = node.insert_partial_schedule(row).insert_mark(mark)
        inside = at.inside(loop.axis, left or _NOTHING, row)
        return _back_to(self._block(marked.child(0).child(0), loop.body, inside), depth)

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
        return isl.UnionSet(f"{parameters(self._model, tuple(self._counts))}{{ {'; '.join(pieces)} }}")

    def _statement_filter(self, numbers: frozenset[int]) -> isl.UnionSet:
        if numbers not in self._filters:
            text = "{ " + "; ".join(tuple_of(s, self._ranks[s]) for s in sorted(numbers)) + " }"
            self._filters[numbers] = isl.UnionSet(text)
        return self._filters[numbers]


_NOTHING = Range("0", "0", "1", 1)
"""What is left of an axis below its points."""


def label(axis: str) -> str:
    """What a loop is called in C: the number that tells axes of one name apart is left out."""
    return re.sub(r"_\d+$", "", axis)


def _back_to(node: isl.ScheduleNode, depth: int) -> isl.ScheduleNode:
    """The ancestor of `node` at tree depth `depth`."""
    distance = node.get_tree_depth() - depth
    return node.ancestor(distance) if distance else node
