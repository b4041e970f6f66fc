"""Whether statements may run a vector of iterations at a time: each for all lanes, before the next statement begins.

A dependence between two iterations of a vector loop survives only if its source is a statement that stands before its
sink. Loops of the outer band carry no dependence at all; for inner loops this has to be asked. Updates of one place by
one statement may run in any order, and `vectorize` sums their lanes apart.
"""

from __future__ import annotations

import islpy as isl

from msc.poly.dependences import Dependences
from msc.poly.outer_band import SharedLoop, loop_row, restricted
from msc.poly.plan import Group, Plan


def lanes_collide(deps: Dependences, plan: Plan) -> bool:
    """Whether some inner vector loop of the plan has a dependence that running in vectors breaks."""
    return any(_collides(deps, plan, group) for group in plan.groups if any(m.vector for m in group.inner))


def _collides(deps: Dependences, plan: Plan, group: Group) -> bool:
    around = [m for m in (*plan.band, *group.inner) if not m.vector]
    (lanes,) = (m for m in group.inner if m.vector)
    inside = restricted(deps, group.statements, [SharedLoop(m.dims, True) for m in around])
    order = inside.strict
    row = isl.MultiUnionPwAff(loop_row(lanes.dims, _ranks(inside)))
    broken = False

    def visit(map_: isl.Map) -> None:
        nonlocal broken
        source, sink = (int(map_.get_tuple_name(t)[1:]) for t in (isl.dim_type.in_, isl.dim_type.out))
        broken = broken or group.statements.index(source) >= group.statements.index(sink)

    order.subtract(order.eq_at_multi_union_pw_aff(row)).foreach_map(visit)
    return broken


def _ranks(deps: Dependences) -> dict[int, int]:
    ranks: dict[int, int] = {}
    deps.domain.foreach_set(lambda s: ranks.__setitem__(int(s.get_tuple_name()[1:]), s.dim(isl.dim_type.set)))
    return ranks
