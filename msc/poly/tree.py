"""From a plan to an isl schedule tree, and the proof that the tree respects the dependences.

The tree, top down: for each member of the band a tile loop (with a sequence of two parts in front where the tile does
not divide the extent, so that every loop has constant bounds and no guard is ever needed); the mark `body`, where local
buffers live; a sequence of the groups; in each the inner loops, then the point loops of the tiles, then a sequence of
the statements. In front of a member that is no loop of some groups there is such a mark too, and a sequence of these
groups and the rest. Loops are announced by marks `kind:name`.

A member that ends at a bound over the sizes has a part for each of ever smaller tiles, down to single iterations: each
takes what whole tiles fill of what the ones before left. How many tiles end there is a parameter of its own
(`tile_counts`): isl need not know that a part may hold only one, which would make it no loop but a guard.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import islpy as isl
from xdsl.ir.affine import AffineExpr

from msc.poly.dependences import Dependences, isl_expr, live_domain, parameters, tuple_of
from msc.poly.live import over_symbols
from msc.poly.model import KernelModel
from msc.poly.outer_band import loop_row
from msc.poly.plan import Group, Member, Plan

BODY_MARK = "body"


@dataclass(frozen=True)
class _Part:
    """The range [low, high) of a member's extent, in isl's syntax, cut into tiles of `tile`.

    `single` if one tile is all of it; `even` if all its tiles are whole.
    """

    low: str
    high: str
    tile: int
    single: bool = False
    even: bool = True


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
        self, node: isl.ScheduleNode, members: Sequence[Member], parts: Mapping[str, _Part], groups: Sequence[Group]
    ) -> isl.ScheduleNode:
        if not members:
            return self._body(node, groups, parts)
        outside = [g for g in groups if g.statements[0] not in members[0].dims]
        if outside:
            return self._in_front(node, outside, members, parts, [g for g in groups if g not in outside])
        member, rest = members[0], members[1:]
        ranges = self._parts(member)
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
        parts: Mapping[str, _Part],
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
        part: _Part,
        rest: Sequence[Member],
        parts: Mapping[str, _Part],
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

    def _body(self, node: isl.ScheduleNode, groups: Sequence[Group], parts: Mapping[str, _Part]) -> isl.ScheduleNode:
        depth, marked = node.get_tree_depth(), self._marked(node)
        filters = [self._statement_filter(g.statements) for g in groups]
        built = self._sequence(marked, filters, lambda child, k: self._group(child, groups[k], groups[k].inner, parts))
        return _back_to(built, depth)

    def _group(
        self, node: isl.ScheduleNode, group: Group, inner: Sequence[Member], parts: Mapping[str, _Part] | None
    ) -> isl.ScheduleNode:
        """A group under its inner loops, then under the point loops of the band's parts; None outside the band."""
        if inner:
            kind = "vector" if inner[0].vector else "sequential"
            return self._loop(
                node,
                f"{kind}:{inner[0].name}",
                inner[0],
                "{d}",
                lambda child: self._group(child, group, inner[1:], parts),
            )
        points = [m for m in self._plan.points if group.statements[0] in m.dims] if parts is not None else []
        return self._tile(node, group, points, parts or {})

    def _tile(
        self, node: isl.ScheduleNode, group: Group, members: Sequence[Member], parts: Mapping[str, _Part]
    ) -> isl.ScheduleNode:
        """The point loops; where the vector loop's rest runs along another, those of all else, then those of the rest.

        Both share the group's inner loops, so that what they sum stays in registers.
        """
        across = _across(members, parts)
        if across is None:
            return self._points(node, group, members, parts)
        lanes = members[-1]
        others = [m for m in members[:-1] if m is not across]
        orders = (members, (*others, replace(lanes, vector=False), replace(across, vector=True)))
        halves = _halves(lanes, parts[lanes.name])
        filters = [self._range_filter(lanes, half) for half in halves]
        return self._sequence(
            node, filters, lambda child, k: self._points(child, group, orders[k], {**parts, lanes.name: halves[k]})
        )

    def _points(
        self, node: isl.ScheduleNode, group: Group, members: Sequence[Member], parts: Mapping[str, _Part]
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

    def _range_filter(self, member: Member, part: _Part) -> isl.UnionSet:
        pieces = [
            f"{tuple_of(s, self._ranks[s])} : {part.low} <= d{dim} < {part.high}" for s, dim in member.dims.items()
        ]
        return isl.UnionSet(f"{parameters(self._model, self._counts)}{{ {'; '.join(pieces)} }}")

    def _parts(self, member: Member) -> list[_Part]:
        bound = _member_bound(self._model, member)
        return _parts(member) if bound is None else _open_parts(member, bound)

    def _statement_filter(self, statements: Sequence[int]) -> isl.UnionSet:
        return isl.UnionSet("{ " + "; ".join(tuple_of(s, self._ranks[s]) for s in statements) + " }")


def _across(members: Sequence[Member], parts: Mapping[str, _Part]) -> Member | None:
    """The member along which what is left of the vector loop runs in the given parts; None where nothing is."""
    if not members or not members[-1].rest or parts[members[-1].name].high != str(members[-1].extent):
        return None
    return next(m for m in members if m.name == members[-1].along)


def _halves(lanes: Member, part: _Part) -> tuple[_Part, _Part]:
    """The last part of the vector loop: what runs along it, and what runs across."""
    border = lanes.extent - lanes.rest
    first = replace(part, high=str(border), tile=border - int(part.low))
    return first, replace(part, low=str(border), tile=lanes.rest)


def _parts(member: Member) -> list[_Part]:
    """The member's extent as whole tiles and, where they do not fill it, a rest that is one smaller tile."""
    whole = member.extent - member.extent % member.tile
    parts = [_Part("0", str(whole), member.tile, whole == member.tile)] if whole else []
    if whole < member.extent:
        parts.append(_Part(str(whole), str(member.extent), member.extent - whole, single=True))
    return parts


def _open_parts(member: Member, bound: AffineExpr) -> list[_Part]:
    """Parts of ever smaller tiles; a vector loop over all iterations stays one."""
    limit = isl_expr(over_symbols(bound))
    if member.vector and member.tile == member.extent:
        return [_Part("0", limit, member.tile, single=True, even=False)]
    parts, low = list[_Part](), "0"
    for tile in _smaller_tiles(member):
        high = f"{low} + {tile}*{_count_name(bound, member, tile)}"
        parts.append(_Part(low, high, tile))
        low = high
    return [*parts, _Part(low, limit, 1)]


def _smaller_tiles(member: Member) -> list[int]:
    """The member's tile, half of it, half of that, and so on above 1."""
    return [member.tile >> k for k in range(member.tile.bit_length() - 1)]


def _member_bound(model: KernelModel, member: Member) -> AffineExpr | None:
    """Where the member ends, if before its extent: the same place for all its statements."""
    found = {model.statements[s].bound(d) for s, d in member.dims.items()}
    if len(found) > 1:
        raise ValueError(f"loop {member.name} ends at different places: {', '.join(sorted(map(str, found)))}")
    return found.pop() if found else None


def tile_counts(model: KernelModel, plan: Plan) -> dict[str, AffineExpr]:
    """Isl's parameters that count the tiles of members with a bound, and their values over the sizes."""
    counts: dict[str, AffineExpr] = {}
    for member in plan.band:
        rest = bound = _member_bound(model, member)
        if bound is None or rest is None or (member.vector and member.tile == member.extent):
            continue
        for tile in _smaller_tiles(member):
            counts[_count_name(bound, member, tile)] = rest // tile
            rest = rest % tile
    return counts


def _count_name(bound: AffineExpr, member: Member, tile: int) -> str:
    letters = "".join(c if c.isalnum() else "_" for c in isl_expr(over_symbols(bound)))
    return f"tiles{tile}_of_{member.tile}_in_{letters}"


def _context(model: KernelModel, plan: Plan) -> isl.Set:
    """What isl may know of the parameters: the least sizes, and that tiles end before what they are cut from.

    Of the largest sizes it would know where only one tile fits.
    """
    facts = [f"n{k} >= {size.low}" for k, size in enumerate(model.sizes)]
    for member in plan.band:
        bound = _member_bound(model, member)
        if bound is not None:
            ends = [f"{part.high}" for part in _open_parts(member, bound)]
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
    unscheduled = isl.Schedule.from_domain(live_domain(model).intersect_params(_context(model, plan)))
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
