"""The loop nest of a plan, as `traffic` reads it."""

from __future__ import annotations

from math import ceil

from msc.cost.traffic import Loop, Nest, Run
from msc.poly.plan import Group, Member, Plan


def nests_of(plan: Plan) -> tuple[Nest, ...]:
    """The loops of a plan, outermost first; a group stands under the loops of the band that all its statements have."""
    before = tuple(nest for group in plan.first for nest in _group(group, ()))
    return (*before, *_band(plan.band, plan.groups, plan.points))


def _band(band: tuple[Member, ...], groups: tuple[Group, ...], points: tuple[Member, ...]) -> tuple[Nest, ...]:
    if not band:
        return tuple(nest for group in groups for nest in _group(group, points))
    first, *rest = band
    apart = tuple(g for g in groups if not any(n in first.dims for n in g.statements))
    inside = tuple(g for g in groups if g not in apart)
    around = Loop(first.dims, ceil(first.extent / first.tile), _band(tuple(rest), inside, points), True)
    return (*_band(tuple(rest), apart, points), around) if apart else (around,)


def _group(group: Group, points: tuple[Member, ...]) -> tuple[Nest, ...]:
    nest: tuple[Nest, ...] = tuple(Run(n) for n in group.statements)
    for member in reversed((*group.inner, *(m for m in points if any(n in m.dims for n in group.statements)))):
        trips = member.extent if member in group.inner else min(member.tile, member.extent)
        nest = (Loop(member.dims, trips, nest, unrolled=member not in group.inner),)
    return nest
