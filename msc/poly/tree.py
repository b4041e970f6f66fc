"""From a plan to an isl schedule tree, and the proof that the tree respects the dependences.

The tree, top down: for each member of the band a tile loop (with a sequence of two parts in front where the tile does
not divide the extent, so that every loop has constant bounds and no guard is ever needed); the mark `body`, where local
buffers live; a sequence of the groups; in each the inner loops, then the point loops of the tiles, then a sequence of
the statements. In front of a member that is no loop of some groups there is such a mark too, and a sequence of these
groups and the rest. Loops are announced by marks `kind:name`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import islpy as isl

from msc.poly.dependences import Dependences, parameters, tuple_of, valid_domain
from msc.poly.model import KernelModel
from msc.poly.outer_band import loop_row
from msc.poly.plan import Group, Member, Plan
from msc.poly.tile_parts import Part, halves, member_bound, open_parts, parts_of, tile_counts

BODY_MARK = "body"


class _TreeBuilder:
    """Inserts a plan below a schedule node. Every method returns a node at the depth it was given."""

    def __init__(self, model: KernelModel, plan: Plan):
        self._plan = plan
        self._model = model
        self._counts = tuple(tile_counts(model, plan))
        self._ranks = {i: len(s.extents) for i, s in enumerate(model.statements)}

    def whole(self, node: isl.ScheduleNode) -> isl.ScheduleNode:
        """Everything: what runs first, each group in loops of its own, then the band."""
        plan = self._plan
        if not plan.first:
            return self._band(node, plan.band, {}, plan.groups)
        rest = [s for g in plan.groups for s in g.statements]
        filters = [self._statement_filter(s) for s in (*(g.statements for g in plan.first), rest)]
        return self._sequence(node, filters, self._first_or_band)

    def _first_or_band(self, node: isl.ScheduleNode, k: int) -> isl.ScheduleNode:
        if k == len(self._plan.first):
            return self._band(node, self._plan.band, {}, self._plan.groups)
        group = self._plan.first[k]
        return self._group(node, group, group.inner, None)

    def _band(
        self, node: isl.ScheduleNode, members: Sequence[Member], parts: Mapping[str, Part], groups: Sequence[Group]
    ) -> isl.ScheduleNode:
        if not members:
            return self._body(node, groups, parts)
        outside = [g for g in groups if g.statements[0] not in members[0].dims]
        if outside:
            return self._in_front(node, outside, members, parts, [g for g in groups if g not in outside])
        member, rest = members[0], members[1:]
        ranges = parts_of(self._model, member)
        if len(ranges) == 1:
            return self._tile_loop(node, member, ranges[0], rest, parts, groups)
        filters = [self._range_filter(member, part) for part in ranges]
        return self._sequence(
            node, filters, lambda child, k: self._tile_loop(child, member, ranges[k], rest, parts, groups)
        )

    def _in_front(
        self,
        node: isl.ScheduleNode,
        outside: Sequence[Group],
        members: Sequence[Member],
        parts: Mapping[str, Part],
        groups: Sequence[Group],
    ) -> isl.ScheduleNode:
        """Groups that the members are no loops of, and after them the members with the other groups."""

        def below(child: isl.ScheduleNode, k: int) -> isl.ScheduleNode:
            if k == len(outside):
                return self._band(child, members, parts, groups)
            return self._group(child, outside[k], outside[k].inner, parts)

        depth = node.get_tree_depth()
        inside = [s for g in groups for s in g.statements]
        filters = [self._statement_filter(s) for s in (*(g.statements for g in outside), inside)]
        return _back_to(self._sequence(self._marked(node), filters, below), depth)

    def _tile_loop(
        self,
        node: isl.ScheduleNode,
        member: Member,
        part: Part,
        rest: Sequence[Member],
        parts: Mapping[str, Part],
        groups: Sequence[Group],
    ) -> isl.ScheduleNode:
        inner = {**parts, member.name: part}
        if part.single:
            return self._band(node, rest, inner, groups)
        row = f"floor(({{d}} - ({part.low}))/{part.tile})" if part.tile > 1 else "{d}"
        kind = "parallel" if member.parallel else "vector" if member.vector and member.tile == 1 else "sequential"
        mark = f"{kind}:{member.name}"
        return self._loop(node, mark, member, row, lambda child: self._band(child, rest, inner, groups))

    def _marked(self, node: isl.ScheduleNode) -> isl.ScheduleNode:
        return node.insert_mark(isl.Id(BODY_MARK, context=node.get_ctx())).child(0)

    def _body(self, node: isl.ScheduleNode, groups: Sequence[Group], parts: Mapping[str, Part]) -> isl.ScheduleNode:
        depth, marked = node.get_tree_depth(), self._marked(node)
        filters = [self._statement_filter(g.statements) for g in groups]
        built = self._sequence(marked, filters, lambda child, k: self._group(child, groups[k], groups[k].inner, parts))
        return _back_to(built, depth)

    def _group(
        self, node: isl.ScheduleNode, group: Group, inner: Sequence[Member], parts: Mapping[str, Part] | None
    ) -> isl.ScheduleNode:
        """A group under its inner loops, then under the point loops of the band's parts; None outside the band.

        Where the vector loop's rest runs along an inner loop, all else runs first, then the rest, in loops of its own.
        """
        points = [m for m in self._plan.points if group.statements[0] in m.dims] if parts is not None else []
        along = _along_inner(points, inner, parts or {})
        if along is None:
            return self._inner(node, group, inner, points, parts or {})
        lanes = points[-1]
        last = (*(m for m in inner if m is not along), replace(along, vector=True))
        ways = ((inner, points), (last, [*points[:-1], replace(lanes, vector=False, rest=0)]))
        return self._halved(node, lanes, parts or {}, lambda child, k, now: self._inner(child, group, *ways[k], now))

    def _inner(
        self,
        node: isl.ScheduleNode,
        group: Group,
        inner: Sequence[Member],
        points: Sequence[Member],
        parts: Mapping[str, Part],
    ) -> isl.ScheduleNode:
        if not inner:
            return self._tile(node, group, points, parts)
        kind = "vector" if inner[0].vector else "sequential"
        mark = f"{kind}:{inner[0].name}"
        below = inner[1:]
        return self._loop(node, mark, inner[0], "{d}", lambda child: self._inner(child, group, below, points, parts))

    def _tile(
        self, node: isl.ScheduleNode, group: Group, members: Sequence[Member], parts: Mapping[str, Part]
    ) -> isl.ScheduleNode:
        """The point loops; where the vector loop's rest runs along another, those of all else, then those of the rest.

        Both share the group's inner loops, so that what they sum stays in registers.
        """
        if not _has_rest(members, parts):
            return self._points(node, group, members, parts)
        lanes = members[-1]
        orders = (members, _across(members))
        return self._halved(node, lanes, parts, lambda child, k, now: self._points(child, group, orders[k], now))

    def _halved(
        self,
        node: isl.ScheduleNode,
        lanes: Member,
        parts: Mapping[str, Part],
        below: Callable[[isl.ScheduleNode, int, Mapping[str, Part]], isl.ScheduleNode],
    ) -> isl.ScheduleNode:
        """The last part of the vector loop: half 0 runs along it, if there is one, half 1 is the rest."""
        found = halves(lanes, parts[lanes.name])
        filters = [self._range_filter(lanes, half) for _, half in found]
        return self._sequence(
            node, filters, lambda child, k: below(child, found[k][0], {**parts, lanes.name: found[k][1]})
        )

    def _points(
        self, node: isl.ScheduleNode, group: Group, members: Sequence[Member], parts: Mapping[str, Part]
    ) -> isl.ScheduleNode:
        if not members:
            filters = [self._statement_filter((s,)) for s in group.statements]
            return self._sequence(node, filters, lambda child, _: child)
        member, part = members[0], parts[members[0].name]
        if part.tile == 1:
            return self._points(node, group, members[1:], parts)
        start = f"({part.low})"
        row = (
            f"{{d}} - {start}" if part.single else f"{{d}} - {start} - {part.tile}*floor(({{d}} - {start})/{part.tile})"
        )
        unrolled = part.even and (self._plan.sums or not any(m.along == member.name for m in self._plan.band))
        kind = "vector" if member.vector else "unroll" if unrolled else "sequential"
        return self._loop(
            node, f"{kind}:{member.name}", member, row, lambda child: self._points(child, group, members[1:], parts)
        )

    def _loop(
        self,
        node: isl.ScheduleNode,
        mark: str,
        member: Member,
        row: str,
        below: Callable[[isl.ScheduleNode], isl.ScheduleNode],
    ) -> isl.ScheduleNode:
        depth = node.get_tree_depth()
        present = {s: self._ranks[s] for s in member.dims}
        text = parameters(self._model, self._counts) + loop_row(member.dims, present, row)
        band = node.insert_partial_schedule(isl.MultiUnionPwAff(text))
        marked = band.insert_mark(isl.Id(mark, context=node.get_ctx()))
        return _back_to(below(marked.child(0).child(0)), depth)

    def _sequence(
        self,
        node: isl.ScheduleNode,
        filters: Sequence[isl.UnionSet],
        below: Callable[[isl.ScheduleNode, int], isl.ScheduleNode],
    ) -> isl.ScheduleNode:
        if len(filters) == 1:
            return below(node, 0)
        depth = node.get_tree_depth()
        listed = isl.UnionSetList.alloc(node.get_ctx(), len(filters))
        for instances in filters:
            listed = listed.add(instances)
        node = node.insert_sequence(listed)
        for k in range(len(filters)):
            node = _back_to(below(node.child(k).child(0), k), depth)
        return node

    def _range_filter(self, member: Member, part: Part) -> isl.UnionSet:
        pieces = [
            f"{tuple_of(s, self._ranks[s])} : {part.low} <= d{dim} < {part.high}" for s, dim in member.dims.items()
        ]
        return isl.UnionSet(f"{parameters(self._model, self._counts)}{{ {'; '.join(pieces)} }}")

    def _statement_filter(self, statements: Sequence[int]) -> isl.UnionSet:
        return isl.UnionSet("{ " + "; ".join(tuple_of(s, self._ranks[s]) for s in statements) + " }")


def _has_rest(members: Sequence[Member], parts: Mapping[str, Part]) -> bool:
    """Whether some of the vector loop, the innermost point loop, runs along another loop in the given parts."""
    return bool(members) and members[-1].rest > 0 and parts[members[-1].name].high == str(members[-1].extent)


def _along_inner(points: Sequence[Member], inner: Sequence[Member], parts: Mapping[str, Part]) -> Member | None:
    """The inner loop along which what is left of the vector loop runs in the given parts; None where nothing is."""
    if not _has_rest(points, parts):
        return None
    return next((m for m in inner if m.name == points[-1].along), None)


def _across(members: Sequence[Member]) -> tuple[Member, ...]:
    """The point loops of a rest: vectors along its member, or the last one if it runs along an inner loop elsewhere."""
    *others, lanes = members
    row = next((m for m in others if m.name == lanes.along), others[-1] if others else None)
    outer = (*(m for m in others if m is not row), replace(lanes, vector=False))
    return (*outer, replace(row, vector=True)) if row is not None else outer


def _context(model: KernelModel, plan: Plan) -> isl.Set:
    """What isl may know of the parameters: the least sizes, and that tiles end before what they are cut from.

    Of the largest sizes it would know where only one tile fits.
    """
    facts = [f"n{k} >= {size.low}" for k, size in enumerate(model.sizes)]
    for member in plan.band:
        bound = member_bound(model, member)
        if bound is not None:
            ends = [f"{part.high}" for part in open_parts(member, bound)]
            facts += [f"{low} <= {high}" for low, high in pairwise(["0", *ends])]
    text = " and ".join(facts)
    return isl.Set(f"{parameters(model, tuple(tile_counts(model, plan)))}{{ : {text} }}")


def _back_to(node: isl.ScheduleNode, depth: int) -> isl.ScheduleNode:
    """The ancestor of `node` at tree depth `depth`."""
    distance = node.get_tree_depth() - depth
    return node.ancestor(distance) if distance else node


def schedule_tree(model: KernelModel, plan: Plan) -> isl.Schedule:
    """The schedule tree of a plan. Raises ValueError for a plan that does not run each statement once."""
    _check_complete(model, plan)
    unscheduled = isl.Schedule.from_domain(valid_domain(model).intersect_params(_context(model, plan)))
    if not model.statements:
        return unscheduled
    root = unscheduled.get_root().child(0)
    return _TreeBuilder(model, plan).whole(root).get_schedule()


def _check_complete(model: KernelModel, plan: Plan) -> None:
    inside = [s for g in plan.groups for s in g.statements]
    if sorted([*inside, *(s for g in plan.first for s in g.statements)]) != list(range(len(model.statements))):
        raise ValueError("the schedule does not run every statement once")
    around = set(inside)
    for member in plan.band:
        torn = any(len({s in member.dims for s in g.statements}) > 1 for g in plan.groups)
        if torn or not member.dims or not around.issuperset(member.dims):
            raise ValueError(f"loop {member.name} of the band is not a loop of every statement below it")
        around = set(member.dims)


def violated(schedule: isl.Schedule, deps: Dependences) -> isl.UnionMap:
    """The strict dependences whose source does not run before their sink; empty for a legal schedule."""
    return _backwards(schedule, deps.strict, isl.Map.lex_lt)


def reversed_pairs(schedule: isl.Schedule, pairs: isl.UnionMap) -> isl.UnionMap:
    """The pairs of instances whose first runs after its second; the same instance is no such pair."""
    return _backwards(schedule, pairs, isl.Map.lex_le)


def _backwards(schedule: isl.Schedule, pairs: isl.UnionMap, legal: Callable[[isl.Space], isl.Map]) -> isl.UnionMap:
    time = schedule.get_map().intersect_domain(schedule.get_domain())
    found: list[isl.Map] = []
    in_time = pairs.apply_domain(time).apply_range(time)
    in_time.foreach_map(lambda m: found.append(m.subtract(legal(m.get_space().domain()))))
    broken = isl.UnionMap.empty(pairs.get_space())
    for times in found:
        broken = broken.union(isl.UnionMap.from_map(times))
    return broken


def carried(member: Member, deps: Dependences, model: KernelModel) -> isl.UnionMap:
    """The dependences between different iterations of a loop that all statements share."""
    ranks = {s: len(statement.extents) for s, statement in enumerate(model.statements) if s in member.dims}
    shared = isl.UnionSet("{ " + "; ".join(tuple_of(s, rank) for s, rank in ranks.items()) + " }")
    order = deps.order.intersect_domain(shared).intersect_range(shared)
    row = isl.MultiUnionPwAff(loop_row(member.dims, ranks))
    return order.subtract(order.eq_at_multi_union_pw_aff(row))
