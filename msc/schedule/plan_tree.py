"""The tree of a plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from msc.poly.model import KernelModel
from msc.poly.plan import Group, Member, Plan
from msc.poly.schedule_tree.nodes import Axis, Block, Cut, Loop, Mark, Node, Run, Tree
from msc.poly.tile_parts import member_bound


def tree_of(model: KernelModel, plan: Plan) -> Tree:
    """The tree that runs what a plan says."""
    builder = _Builder(model, plan)
    body = builder.body()
    return Tree(tuple(builder.axes.values()), body)


@dataclass
class _Builder:
    model: KernelModel
    plan: Plan
    axes: dict[str, Axis] = field(default_factory=dict[str, Axis])
    _names: dict[int, str] = field(default_factory=dict[int, str])

    def body(self) -> Block:
        for member in (*self.plan.band, *(m for g in (*self.plan.first, *self.plan.groups) for m in g.inner)):
            self._names[id(member)] = self._declare(member)
        first = [self._inner(g.inner, (), g) for g in self.plan.first]
        band = self._band(self.plan.band, self.plan.groups)
        return Block((*first, *band.nodes), band.places) if not first else Block((*first, *band.nodes))

    def _declare(self, member: Member) -> str:
        for name in (member.name, *(f"{member.name}_{k}" for k in range(1, 99))):
            known = self.axes.get(name)
            if known is None:
                self.axes[name] = Axis(name, member.extent, dict(member.dims))
                return name
            if known.extent == member.extent and not known.dims.keys() & member.dims.keys():
                self.axes[name] = replace(known, dims={**known.dims, **member.dims})
                return name
        raise AssertionError

    def _band(self, members: Sequence[Member], groups: Sequence[Group]) -> Block:
        if not members:
            return Block(tuple(self._group(g) for g in groups))
        member = members[0]
        outside = [g for g in groups if g.statements[0] not in member.dims]
        if outside:
            rest = self._band(members, [g for g in groups if g not in outside])
            return Block((*(self._group(g) for g in outside), *rest.nodes))
        below = self._band(members[1:], groups)
        bound = member_bound(self.model, member)
        name = self._names[id(member)]
        if member.tile == 1:
            mark: Mark = "parallel" if member.parallel else "vector" if member.vector else ""
            return Block((Loop(name, below, None, mark, least=member.least),))
        tile = min(member.tile, member.extent)
        if tile == member.extent and (bound is None or member.vector):
            return below
        return Block((Loop(name, below, tile, "parallel" if member.parallel else "", least=member.least),))

    def _group(self, group: Group) -> Node:
        points = [m for m in self.plan.points if group.statements[0] in m.dims]
        lanes = points[-1] if points and points[-1].rest else None
        along = next((m for m in group.inner if lanes and m.name == lanes.along), None)
        if lanes is None or along is None:
            return self._inner(group.inner, points, group)
        last = (*(m for m in group.inner if m is not along), self._as(along, vector=True))
        loose = [*points[:-1], self._as(lanes, vector=False, rest=0)]
        head = self._inner(group.inner, [*points[:-1], self._as(lanes, rest=0)], group)
        tail = self._inner(last, loose, group)
        return Cut(self._names[id(lanes)], lanes.extent - lanes.rest, Block((head,)), Block((tail,)))

    def _as(self, member: Member, **changes: object) -> Member:
        other = replace(member, **changes)
        self._names[id(other)] = self._names[id(member)]
        self._kept.append(other)
        return other

    _kept: list[Member] = field(default_factory=list[Member])

    def _inner(self, inner: Sequence[Member], points: Sequence[Member], group: Group) -> Node:
        if inner:
            mark: Mark = "vector" if inner[0].vector else ""
            return Loop(self._names[id(inner[0])], Block((self._inner(inner[1:], points, group),)), None, mark)
        if points and points[-1].rest:
            lanes = points[-1]
            head = self._points([*points[:-1], self._as(lanes, rest=0)], group)
            tail = self._points(self._across(points), group)
            return Cut(self._names[id(lanes)], lanes.extent - lanes.rest, Block((head,)), Block((tail,)))
        return self._points(points, group)

    def _across(self, members: Sequence[Member]) -> tuple[Member, ...]:
        *others, lanes = members
        row = next((m for m in others if m.name == lanes.along), others[-1] if others else None)
        outer = (*(m for m in others if m is not row), self._as(lanes, vector=False, rest=0))
        return (*outer, self._as(row, vector=True)) if row is not None else outer

    def _points(self, members: Sequence[Member], group: Group) -> Node:
        if not members:
            return Run(group.statements)
        member = members[0]
        unrolled = self.plan.sums or not any(m.along == member.name for m in self.plan.band)
        mark: Mark = "vector" if member.vector else "unroll" if unrolled else ""
        return Loop(self._names[id(member)], Block((self._points(members[1:], group),)), None, mark)
