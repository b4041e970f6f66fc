"""Whether statements may run a vector of iterations at a time: each for all lanes, before the next statement begins.

A dependence between two iterations of a vector loop survives only if its source is a statement that stands before its
sink. Loops of the outer band carry no dependence at all; for inner loops this has to be asked. Updates of one place by
one statement may run in any order, but not at once: either all lanes of a vector update one place, and `vectorize`
sums them apart, or each lane has a place of its own. Places that some lanes share
(`y[i // 2] += x[i]`) have no vectors.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import islpy as isl

from msc.poly.dependences import Dependences, tuple_of
from msc.poly.model import KernelModel
from msc.poly.outer_band import SharedLoop, loop_row, restricted
from msc.poly.plan import Group, Member, Plan


def lanes_collide(model: KernelModel, deps: Dependences, plan: Plan) -> bool:
    """Whether some inner vector loop of the plan has a dependence that running in vectors breaks."""
    plans = [plan, *(_across(plan, m) for m in plan.band if m.rest)]
    return any(
        _collides(model, deps, p, group) for p in plans for group in p.groups if any(m.vector for m in group.inner)
    )


def _across(plan: Plan, lanes: Member) -> Plan:
    """How the rest of a vector loop runs, if that is along an inner loop."""
    groups = (
        replace(group, inner=tuple(replace(m, vector=m.vector or m.name == lanes.along) for m in group.inner))
        if set(group.statements) <= lanes.dims.keys()
        else group
        for group in plan.groups
    )
    return replace(
        plan, band=tuple(replace(m, vector=False) if m is lanes else m for m in plan.band), groups=(*groups,)
    )


def _collides(model: KernelModel, deps: Dependences, plan: Plan, group: Group) -> bool:
    around = [m for m in (*plan.band, *group.inner) if not m.vector]
    (lanes,) = (m for m in group.inner if m.vector)
    inside = restricted(deps, group.statements, [SharedLoop(m.dims, True) for m in around])
    row = isl.MultiUnionPwAff(loop_row(lanes.dims, _ranks(inside)))
    summed = [s for s, dim in lanes.dims.items() if dim in model.statements[s].reduced]
    order = inside.order.subtract(_updates_by(inside, summed))
    broken = False

    def visit(map_: isl.Map) -> None:
        nonlocal broken
        source, sink = (int(map_.get_tuple_name(t)[1:]) for t in (isl.dim_type.in_, isl.dim_type.out))
        broken = broken or group.statements.index(source) >= group.statements.index(sink)

    order.subtract(order.eq_at_multi_union_pw_aff(row)).foreach_map(visit)
    return broken


def _updates_by(deps: Dependences, statements: Collection[int]) -> isl.UnionMap:
    """The dependences between updates by some statements."""
    ranks = _ranks(deps)
    instances = "; ".join(tuple_of(s, ranks[s]) for s in statements)
    return deps.updates.intersect_domain(isl.UnionSet(f"{{ {instances} }}"))


def _ranks(deps: Dependences) -> dict[int, int]:
    ranks: dict[int, int] = {}
    deps.domain.foreach_set(lambda s: ranks.__setitem__(int(s.get_tuple_name()[1:]), s.dim(isl.dim_type.set)))
    return ranks
