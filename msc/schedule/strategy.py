"""The decisions for one kernel: shared loops, the vector loop, tiles, and the parallel loop.

isl proves which loops the statements can share (`sharing`); the cost model chooses the vector loop; tiles
of reductions are chosen to keep accumulators in registers (`tiling`). Each decision is a move on the tree. Nothing is
measured.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import gcd

from msc.cost.access import block_size, pieces, strides
from msc.cost.prediction import KernelCost, traffic
from msc.poly.dependences import Dependences, dependences
from msc.poly.lanes import with_lanes
from msc.poly.model import KernelModel
from msc.poly.remembered import remembered
from msc.poly.schedule_tree.moves import chain, compute_at, enclose, reorder
from msc.poly.schedule_tree.nodes import Axis, Loop, Node, Tree, below
from msc.schedule.loops.loop_order import in_fewest_pages, with_best_order
from msc.schedule.loops.outline import outline, own_loops_of
from msc.schedule.loops.sharing import Group, grouped, grouped_node, initial, own_loops, shared_band
from msc.schedule.loops.vector_axes import OUTSIDE, can_carry, has_bound, is_worth_vectors, may_be_summed
from msc.schedule.matrix_units import with_instructions
from msc.schedule.members.clusters import composed
from msc.schedule.members.members import Member, block_loops, members_of
from msc.schedule.prefetching.prefetches import with_prefetches
from msc.schedule.storage.places import stored
from msc.schedule.sums.partial_sums import long_sums, with_partial_sums
from msc.schedule.sums.sum_order import Orders, sum_orders
from msc.schedule.threads import NOWHERE, Sharing, Surroundings, shared, shared_blocks
from msc.schedule.tiles.packing import with_packing
from msc.schedule.tiles.reduction_blocks import with_reduction_blocks
from msc.schedule.tiles.register_tiles import (
    is_crossed,
    retiled,
    vectors_innermost,
    with_blocks_outermost,
    with_tail_along,
)
from msc.schedule.tiles.tile_choice import Option, TileChoice
from msc.schedule.tiles.tiling import RegisterTile, TileSearch
from msc.support.wording import counted
from msc.targets.machine import Machine

NEAR = 1.05
"""The predicted time of vectors that are less full than the fullest is multiplied by this, as parts of vectors take
more time than is predicted. The margin is the same on every machine.
"""
TAIL_THAT_MATTERS = 0.1
"""The part of a kernel's instructions from which the tail of its columns gets loops of its own."""


@dataclass
class Decision:
    """A schedule with the reasons for it; `either` if it is the same whether or not threads wrote what it reads."""

    tree: Tree
    reasons: list[str] = field(default_factory=list[str])
    either: bool = True


def decide(
    model: KernelModel,
    deps: Dependences,
    target: Machine,
    threads: int,
    around: Surroundings = NOWHERE,
    *,
    blocks: bool = True,
    prefetches: bool = True,
    sums: bool = True,
    units: bool = True,
    loops: Callable[..., Sharing] | None = None,
) -> Decision:
    """The schedule of a kernel on a target, among others; loops over blocks that they share are outermost.

    Reductions are in `blocks` where that pays, what caches do not hold is requested ahead with `prefetches`, and
    long sums are added up from partial ones with `sums`: in the same order for any number of threads. With `units`
    products take instructions that sum several terms. `loops` stands
    in for `decided_loops`, and gives the same.
    """

    def decided(threads: int, orders: Orders | None = None) -> Decision:
        reasons, of = list[str](), loops or decided_loops
        sharing = of(model, deps, target, threads, reasons, around, blocks=blocks, orders=orders)
        tree = with_lanes(model, sharing.tree, reasons)
        tree = stored(model, deps, tree, target)
        tree = with_prefetches(model, tree, target) if prefetches and target.abilities.prefetches else tree
        tree = with_partial_sums(model, tree, target, orders) if sums else tree
        tree = with_instructions(KernelCost(model, target), tree, reasons) if units else tree
        return Decision(tree, reasons, sharing.either)

    if threads == 1 or not long_sums(model):
        return decided(threads)
    alone = decided(1)
    orders = sum_orders(model, alone.tree)
    several = decided(threads, orders)
    if sum_orders(model, several.tree) == orders:
        return several
    return replace(alone, reasons=[*alone.reasons, "threads would add in another order"], either=several.either)


def decided_loops(
    model: KernelModel,
    deps: Dependences,
    target: Machine,
    threads: int,
    reasons: list[str],
    around: Surroundings = NOWHERE,
    *,
    blocks: bool = True,
    orders: Orders | None = None,
) -> Sharing:
    """The loops of the schedule, without storage and prefetches: what the cost model reads.

    Blocks of a long sum are such that it can be added up as `orders` say.
    """
    members, fresh = members_of(model), around.fresh(model)
    if len(members) > 1:
        return _clustered(model, members, target, threads, reasons, around)
    found, why = _loops_of_one(members[0], deps, target, threads, fresh)
    reasons += why
    sharing = shared(model, found.tree, found.names, target, threads, reasons, around, found.bordered)
    tree = found.bordered(sharing.tree)
    cost = KernelCost(model, target, fresh)
    return replace(sharing, tree=with_reduction_blocks(cost, deps, tree, reasons, orders) if blocks else tree)


def _loops_of_one(
    member: Member, deps: Dependences, target: Machine, threads: int, fresh: frozenset[int]
) -> tuple[_Loops, Sequence[str]]:
    """The loops of a kernel's only member, with the reasons. Threads matter only if they share the columns of rows."""
    known, key = _known_loops(member.kernel), (target, threads if _may_sum_rows(member.kernel) else 0, fresh)
    if key not in known:
        why = list[str]()
        known[key] = _loops(member, deps, target, threads, why, fresh), why
    return known[key]


@remembered
def _known_loops(model: KernelModel) -> dict[tuple[Machine, int, frozenset[int]], tuple[_Loops, Sequence[str]]]:
    """What `_loops_of_one` found of a kernel: it is asked for one thread and for several."""
    del model
    return {}


def _may_sum_rows(model: KernelModel) -> bool:
    """Whether a reduction reads every element once, so that the sums of whole rows may be added up at once."""
    return any(
        s.reduced and all(index.used_dims() == set(range(len(s.extents))) for _, index in s.accesses()[1:])
        for s in model.statements
    )


def _clustered(
    model: KernelModel,
    members: Sequence[Member],
    target: Machine,
    threads: int,
    reasons: list[str],
    around: Surroundings,
) -> Sharing:
    """The trees of members, each decided by itself, as one: threads share the outermost loop over blocks."""
    loops, trees = block_loops(model, members), list[Tree]()
    for member in members:
        why, own = list[str](), [loop.of(member) for loop in loops]
        fresh = frozenset(k for k, array in enumerate(member.arrays) if array in around.fresh(model))
        is_numbered = any(loop.is_numbered for loop in loops)
        found = _loops(member, dependences(member.model), target, threads, why, fresh, own, is_numbered=is_numbered)
        trees.append(found.bordered(found.tree))
        reasons += [f"member {len(trees)}: {reason}" for reason in why]
    return shared_blocks(model, composed(members, trees, loops), target, threads, reasons, around)


@dataclass(frozen=True)
class _Loops:
    """The loops of a kernel or member: `names` are the axes that all of it shares; `bordered` adds what runs first."""

    tree: Tree
    names: Sequence[str]
    bordered: Callable[[Tree], Tree]


def _loops(
    member: Member,
    deps: Dependences,
    target: Machine,
    threads: int,
    reasons: list[str],
    fresh: frozenset[int],
    over: Sequence[Mapping[int, int]] = (),
    *,
    is_numbered: bool = False,
) -> _Loops:
    """The loops of a member, those `over` blocks outermost; nothing of them for vectors and tiles if `is_numbered`."""
    model = member.model
    band = shared_band(model, deps, member.others, reasons)
    groups = grouped(model, deps, band, member.others)
    blocked = [axis for loop in over for axis in band if axis.dims.items() <= loop.items()]
    numbered = blocked if is_numbered else []
    inside = tuple(axis for axis in band if axis not in numbered)
    cost = KernelCost(model, target, fresh)
    tree = initial(inside, groups, numbered)
    names = [axis.name for axis in tree.axes[: len(band)]]
    search = _Search(cost, tree, names[len(numbered) :], groups, threads or target.cores, is_alone=not over)
    tree = search.best(reasons)
    for name in reversed(names[: len(numbered)]):
        tree = enclose(tree, name)
    tree = with_blocks_outermost(model, tree, over, cost.lanes, target.line_pair)
    tree = with_packing(model, tree, names, member.copies, cost.lanes, reasons)
    return _Loops(tree, names, partial(_with_borders, cost, member.first, len(band)))


def _with_borders(cost: KernelCost, first: Sequence[int], at: int, tree: Tree) -> Tree:
    """The tree with these statements in front, one after the other; their axes come after the first `at`.

    Where memory is scarce they come last: the rest can be written over an input of which it needs no more rows.
    """
    nodes, known = list[Node](), len(tree.axes)
    for number in first:
        group = Group((number,), own_loops(cost.model, number, ()))
        tree, node = grouped_node(tree, group, at=at + len(tree.axes) - known)
        nodes.append(node)
    if cost.target.is_bare:
        tree = replace(tree, body=replace(tree.body, nodes=(*tree.body.nodes, *nodes)))
    else:
        for node in reversed(nodes):
            tree = compute_at(tree, node, None)
    for node in nodes:
        tree = _with_inner_vector(cost, tree, list(chain(node)))
    return tree


def plain(model: KernelModel, deps: Dependences, target: Machine) -> Tree:
    """The schedule that is always legal: statements one after the other, each in its own loops, no vectors."""
    groups = [Group((k,), own_loops(model, k, ())) for k in range(len(model.statements))]
    return stored(model, deps, initial((), groups), target)


@dataclass(frozen=True)
class _Search:
    """The search for the vectors and register tiles of a kernel: of a `tree` of plain loops, `names` around all."""

    cost: KernelCost
    tree: Tree
    names: Sequence[str]
    groups: Sequence[Group]
    threads: int
    is_alone: bool
    """Whether no other kernel's tiles decide what it costs, as a loop over blocks that both share does."""

    def best(self, reasons: list[str]) -> Tree:
        """The tree whose vectors are predicted to make the kernel fastest, with a margin for those that are fullest."""
        model, band = self.cost.model, list(enumerate(self._band))
        carriers = [k for k, axis in reversed(band) if is_worth_vectors(model, axis, "internal", *OUTSIDE)]
        full = {carrier: self._fullness(carrier) for carrier in (*carriers, None)}
        fullest = max((full[k] for k, axis in band if is_worth_vectors(model, axis, *OUTSIDE)), default=0)
        options = {carrier: self._along(carrier) for carrier in full}
        margins = [1.0 if full[carrier] >= fullest else NEAR for carrier in options]
        found = self.cost.fastest([option.tree for option in options.values()], margins=margins)
        assert found is not None
        best, cycles = found
        option = list(options.values())[best]
        faster = option.tiles.faster(option.tree) if option.tiles is not None and self.is_alone else None
        tree, cycles, why = faster or (option.tree, cycles, option.of_tiles)
        reasons += [f"{option.vectors} ({cycles:.0f} cycles predicted)", *why]
        return tree

    def _fullness(self, carrier: int | None) -> float:
        """The part of the lanes of vectors along a loop of the band that is used."""
        extent, lanes = 0 if carrier is None else self._band[carrier].extent, self.cost.lanes
        return extent / (lanes * max(1, pieces(extent, lanes)))

    @property
    def _band(self) -> list[Axis]:
        return [self.tree.axis(name) for name in self.names]

    def _along(self, carrier: int | None) -> Option:
        """The tree with vectors along a loop of the band, or along inner ones."""
        if carrier is None:
            tree = self.tree
            for node in outline(tree).nodes:
                tree = _with_inner_vector(self.cost, tree, own_loops_of(node, self.names))
            return Option("vectors along inner loops", tree)
        columns = self._band[carrier]
        tree, tiles = self._tiled(columns, reasons := list[str]())
        return Option(f"vectors of {self.cost.lanes} along {columns.name}", tree, reasons, tiles)

    def _tiled(self, columns: Axis, reasons: list[str]) -> tuple[Tree, TileChoice | None]:
        """Vectors along the columns, and register tiles where reductions run below the band (`tile_order`)."""
        model, lanes = self.cost.model, self.cost.lanes
        others = [axis for axis in self._band if axis is not columns]
        below = [s for group in self.groups if group.own for s in group.statements]
        reductions = [s for s in below if model.statements[s].reduced]
        if below and not reductions:
            return self._with_columns([*others, columns], columns, lanes), None
        if not reductions:
            return self._moved(others, columns, reasons), None
        heaviest = max(reductions, key=lambda s: model.statements[s].points)
        group = next(group for group in self.groups if heaviest in group.statements)
        summed = [axis.dims[heaviest] for axis in group.own if may_be_summed(model, group, axis)]
        inner = tuple(axis.dims[heaviest] for axis in self.tree.axes if axis.dims.get(heaviest) in summed)
        statement, fresh = model.statements[heaviest], self.cost.fresh
        target = self.cost.target.of(model.arrays[statement.target].dtype)
        search = TileSearch(model, statement, columns.dims[heaviest], lanes, target, inner, fresh)
        if row := search.whole_row(self.threads):
            reasons.append(f"sums of {row} {columns.name} at once: rows are read in the order of memory")
            tree = self._with_columns([*others, columns], columns, row)
            return with_best_order(self.cost, tree, self.names, reasons), None
        sides = tuple(axis.dims[heaviest] for axis in reversed(others) if axis.extent > 1)
        made = partial(self._with_register_tile, heaviest, columns, others)
        tiles = TileChoice(self.cost, made, search, sides)
        tree, why = tiles.best()
        reasons += why
        return tree, tiles

    def _with_register_tile(
        self, heaviest: int, columns: Axis, others: Sequence[Axis], tile: RegisterTile, most: float
    ) -> tuple[Tree, list[str]] | None:
        """The band in a register tile, in the order that is predicted to be fastest, with the reasons.

        None if instructions alone take `most` cycles, and the loops inside the tile have one order.
        """
        counts = dict(tile.rows)
        sizes = {axis.name: counts[axis.dims[heaviest]] for axis in others if axis.dims[heaviest] in counts}
        name = " x ".join(f"{row} {size}" for row, size in sizes.items()) or "none 1"
        reasons = [f"register tile {name} x {columns.name} {tile.width}: {counted(round(tile.cycles), 'cycle')} a step"]
        carrier = (axis.name for axis in self.tree.axes if axis.dims.get(heaviest) == tile.along)
        along = next(carrier) if tile.tail else None
        orders = tile_orders(self.cost.model, heaviest, columns, others, sizes, self.cost.target)
        trees = [self._in_tiles(order, columns, tile, sizes, along) for order in orders]
        if all(len(g.own) <= 1 for g in self.groups) and all(self.cost.instructions(t, 1) >= most for t in trees):
            return None
        reasons += [_tail_reason(columns, tile.tail, along)] if along else []
        found = self.cost.fastest(trees) if len(trees) > 1 else None
        return with_best_order(self.cost, trees[found[0] if found else 0], self.names, reasons), reasons

    def _in_tiles(
        self, order: Sequence[Axis], columns: Axis, tile: RegisterTile, sizes: Mapping[str, int], along: str | None
    ) -> Tree:
        """The band in an order, in a register tile; the tail of the columns runs `along` another axis."""
        tree = self._with_columns(order, columns, tile.width)
        for row, size in sizes.items():
            tree = retiled(self.cost.model, tree, row, size, "unroll")
        return with_tail_along(tree, columns.name, tile.tail, along) if along else tree

    def _with_columns(self, order: Sequence[Axis], columns: Axis, width: int) -> Tree:
        """The band in an order, with vectors along the columns in tiles of a width."""
        tree = reorder(self.tree, [axis.name for axis in order])
        return retiled(self.cost.model, tree, columns.name, width, "vector")

    def _moved(self, others: Sequence[Axis], columns: Axis, reasons: list[str]) -> Tree:
        """The band without reductions: the columns whole and innermost.

        Where some array has another axis contiguous and this one apart (a transposition), tiles of a vector of both
        stay in L1.
        """
        model, lanes = self.cost.model, self.cost.lanes
        row = next((axis for axis in others if is_crossed(model, axis, columns) and axis.extent > 1), None)
        if row is not None:
            height, width = (min(lanes, axis.extent) for axis in (row, columns))
            tiles = f"tiles of {height} x {width} along {row.name} and {columns.name}"
            reasons.append(f"{tiles}: one is read across")
            order = [*(axis for axis in others if axis is not row), row, columns]
            return retiled(model, self._with_columns(order, columns, width), row.name, height, "unroll")
        blocks = gcd(*(block_size(model.statements[s], d) for s, d in columns.dims.items()))
        width = blocks or columns.extent
        tree = in_fewest_pages(self.cost, others, lambda order: self._with_columns([*order, columns], columns, width))
        options = {} if blocks else dict(self._with_tails(others, columns))
        cycles = {name: self.cost.instructions(each, 1) for name, each in options.items()}
        best = min(cycles, key=lambda name: cycles[name], default=None)
        if best is None or cycles[best] > (1 - TAIL_THAT_MATTERS) * self.cost.instructions(tree, 1):
            return tree
        reasons.append(_tail_reason(columns, columns.extent % lanes, best))
        return options[best]

    def _with_tails(self, others: Sequence[Axis], columns: Axis) -> Iterator[tuple[str, Tree]]:
        """The band with the columns innermost, whose tail runs along another axis that fills vectors, by that."""
        model, lanes = self.cost.model, self.cost.lanes
        tail, tree = columns.extent % lanes, self._with_columns([*others, columns], columns, columns.extent)
        if not tail or columns.extent < lanes or has_bound(model, columns):
            return
        for axis in others:
            if axis.extent >= lanes and can_carry(model, axis) and axis.dims.keys() == columns.dims.keys():
                rows = retiled(model, tree, axis.name, min(lanes, axis.extent), "unroll")
                yield axis.name, with_tail_along(rows, columns.name, tail, axis.name)


def _with_inner_vector(cost: KernelCost, tree: Tree, own: Sequence[Loop]) -> Tree:
    """The tree with one of a node's own loops, right in each other, innermost as vectors; if none is better, as it is.

    As vectors it is better, too, if both take as long.
    """
    statements = below(own[0]) if own else frozenset[int]()
    here = [replace(axis, dims={s: axis.dims[s] for s in statements}) for axis in (tree.axis(n.axis) for n in own)]
    carriers = [
        loop for loop, axis in zip(own, here, strict=True) if is_worth_vectors(cost.model, axis, "internal", *OUTSIDE)
    ]
    options = [*(vectors_innermost(tree, own[0], loop) for loop in carriers), tree]
    return options[0] if len(options) == 1 else min(options, key=lambda each: cost.instructions(each, 1, statements))


def _tail_reason(columns: Axis, tail: int, along: str) -> str:
    return f"the last {tail} of {columns.name}, which fill no vector, vectorized along {along}"


# The orders of the loops over register tiles that predictions compare: which operand stays in a cache.
#
# A product reads one operand by the columns of its tiles, which are vectors, and one by their rows. With columns
# outermost a panel of columns stays in L1 while all rows are streamed, once for each panel; these are many passes
# over a large image, each of which reads a few elements of every line. With columns innermost each line of the
# image is read once, and all panels are read repeatedly, from L2 if they stay there. If a panel also depends on
# other loops, those over rows are inside them. All other loops are in the order of their strides.
def tile_orders(
    model: KernelModel, statement: int, columns: Axis, others: Sequence[Axis], rows: Collection[str], target: Machine
) -> Sequence[Sequence[Axis]]:
    """The orders of a kernel's band around the reduction `statement`: the loop over columns outermost, or innermost.

    `others` are ordered by their strides, the largest first; `rows` are those that have tiles. If L1 holds all data,
    there is one order. Where memory is scarce it goes through an image once, which the result may follow in memory.
    """
    ordered = _ordered(model, statement, columns, others, rows)
    outermost, innermost = (columns, *ordered), (*ordered, columns)
    if target.is_bare:
        return (sorted(innermost, key=lambda axis: -_distance_in_results(model, axis)),)
    differ = any(axis.extent > 1 for axis in others) and traffic(model) > target.caches[0].bytes
    return (outermost, innermost) if differ else (outermost,)


def _distance_in_results(model: KernelModel, axis: Axis) -> int:
    """How far apart an axis writes the elements of an output."""
    written = {s: d for s, d in axis.dims.items() if model.arrays[model.statements[s].target].kind == "output"}
    return max((abs(strides(model, model.statements[s], d)[0]) for s, d in written.items()), default=0)


def _ordered(
    model: KernelModel, statement: int, columns: Axis, others: Sequence[Axis], rows: Collection[str]
) -> Sequence[Axis]:
    """The loops, those over rows last if an operand read by the columns changes with others."""
    column = columns.dims[statement]
    across = {axis.dims[statement] for axis in others if axis.name in rows}
    panels = [dims for dims in _moves(model, statement).values() if column in dims and not dims & across]
    beside = {axis.dims[statement] for axis in others if axis.name not in rows and axis.extent > 1}
    changes = any(dims & beside for dims in panels)
    return sorted(others, key=lambda axis: axis.name in rows) if changes else others


def _moves(model: KernelModel, number: int) -> dict[int, set[int]]:
    """For each read of a statement, by its place among the accesses, the dimensions that it moves along."""
    statement = model.statements[number]
    along = [strides(model, statement, dim) for dim in range(len(statement.extents))]
    reads = range(1, len(statement.accesses()))
    return {k: {dim for dim, per_access in enumerate(along) if per_access[k]} for k in reads}
