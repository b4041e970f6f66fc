"""Which loops statements can share: isl computes a schedule, and we keep what it proves free of dependences.

isl's scheduler (Pluto-like: proximity for fusion, coincidence for parallelism) is asked to schedule all statements as
one component (`whole_component`), which makes its outermost band hold the loops that all of them share.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import islpy as isl

from msc.poly.dependences import Dependences, statement_numbers
from msc.poly.model import KernelModel
from msc.poly.remembered import remembered

MAX_OPERATIONS = 50_000
"""isl's own work limit for one search; beyond it the loops that it may find are not shared. Layers that profit take
up to 30,000 operations. One takes 20 µs where numbers get long, as for grouped convolutions, so the limit is low.
"""

CORNER = 16
"""Iterations of each loop among which isl looks for shared ones."""


class ScheduleLimit(Exception):
    """isl gave up: the kernel is too complicated for its operation limit."""


@dataclass(frozen=True)
class SharedLoop:
    """One dimension of every statement, aligned: `dims[k]` of statement k; `coincident` if it carries no dependence."""

    dims: Mapping[int, int]
    coincident: bool


def shared_loops(model: KernelModel, deps: Dependences, statements: Sequence[int]) -> list[SharedLoop]:
    """The outermost loops that `statements` can share one to one, in isl's order.

    isl's outermost band may be permuted: its rows that are not one loop of every statement are left to the inside.
    A statement without loops shares none; isl, asked all the same, searches for hours where extents are large.
    """
    if not all(model.statements[s].extents for s in statements):
        return []
    schedule = _compute(_corner(model, deps, statements))
    node = schedule.get_root().child(0)
    if node.get_type() != isl.schedule_node_type.band:
        return []
    loops: list[SharedLoop] = []
    partial = node.band_get_partial_schedule()
    for position in range(node.band_n_member()):
        dims = _aligned_dims(partial.get_union_pw_aff(position))
        if set(dims) == set(statements):
            coincident = bool(node.band_member_get_coincident(position)) and carries_nothing(deps, dims)
            loops.append(SharedLoop(dims, coincident))
    return loops


def _corner(model: KernelModel, deps: Dependences, statements: Sequence[int]) -> Dependences:
    """The dependences among the first iterations of each loop: isl's time grows with the extents, its loops do not.

    A loop that carries no dependence carries none there; whether one of there carries none anywhere is to be asked.
    """
    boxes = [_corner_of(s, len(model.statements[s].extents)) for s in statements]
    box = isl.UnionSet("{ " + "; ".join(boxes) + " }")
    order, flow, updates = (m.intersect_domain(box).intersect_range(box) for m in (deps.order, deps.flow, deps.updates))
    return Dependences(deps.domain.intersect(box), order, flow, updates)


def _corner_of(statement: int, rank: int) -> str:
    names = [f"d{k}" for k in range(rank)]
    bounds = " and ".join(f"{name} < {CORNER}" for name in names)
    return f"S{statement}[{', '.join(names)}] : {bounds}"


def _compute(deps: Dependences) -> isl.Schedule:
    context = deps.domain.get_ctx()
    context.set_schedule_whole_component(1)
    context.set_schedule_maximize_coincidence(1)
    # Rows that join two loops into one are found at once, and skipped; avoiding them takes isl minutes.
    context.set_schedule_treat_coalescing(0)
    context.reset_operations()
    context.set_max_operations(MAX_OPERATIONS)
    try:
        constraints = (
            isl.ScheduleConstraints.on_domain(deps.domain)
            .set_validity(deps.order)
            .set_proximity(deps.flow)
            .set_coincidence(deps.order)
        )
        return constraints.compute_schedule()
    except isl.Error as error:
        raise ScheduleLimit(str(error)) from error
    finally:
        context.set_max_operations(0)


def _aligned_dims(row: isl.UnionPwAff) -> dict[int, int]:
    """Statement -> dimension where the row is exactly that dimension; other statements are left out."""
    dims: dict[int, int] = {}

    def visit(piecewise: isl.PwAff) -> None:
        statement = int(piecewise.get_tuple_id(isl.dim_type.in_).get_name().removeprefix("S"))
        dimension = _single_dimension(piecewise)
        if dimension is not None:
            dims[statement] = dimension

    row.get_pw_aff_list().foreach(visit)
    return dims


def _single_dimension(piecewise: isl.PwAff) -> int | None:
    if not piecewise.isa_aff():
        return None
    aff = piecewise.as_aff()
    if aff.dim(isl.dim_type.div) or not aff.get_constant_val().is_zero():
        return None
    coefficients = [aff.get_coefficient_val(isl.dim_type.in_, k) for k in range(aff.dim(isl.dim_type.in_))]
    used = [k for k, value in enumerate(coefficients) if not value.is_zero()]
    return used[0] if len(used) == 1 and coefficients[used[0]].is_one() else None


def restricted(deps: Dependences, statements: Sequence[int], fixed: Sequence[SharedLoop]) -> Dependences:
    """The dependences among `statements` inside one iteration of the `fixed` loops."""
    ranks = {s: _ranks(deps)[s] for s in statements}
    texts = [f"S{s}[{', '.join(f'd{i}' for i in range(rank))}]" for s, rank in ranks.items()]
    kept = isl.UnionSet("{ " + "; ".join(texts) + " }")
    domain = deps.domain.intersect(kept)
    order = deps.order.intersect_domain(kept).intersect_range(kept)
    flow = deps.flow.intersect_domain(kept).intersect_range(kept)
    for loop in fixed:
        row = isl.MultiUnionPwAff(loop_row(loop.dims, ranks)) if statements else None
        if row is not None:
            order = order.eq_at_multi_union_pw_aff(row)
            flow = flow.eq_at_multi_union_pw_aff(row)
    return Dependences(domain, order, flow, order.intersect(deps.updates))


def can_share(deps: Dependences, loops: Sequence[Mapping[int, int]]) -> bool:
    """Whether statements in program order may share exactly these loops: no dependence goes back in them."""
    order = deps.strict
    for dims in loops:
        row = isl.MultiUnionPwAff(loop_row(dims, {s: _ranks(deps)[s] for s in dims}))
        if not order.lex_gt_at_multi_union_pw_aff(row).is_empty():
            return False
        order = order.eq_at_multi_union_pw_aff(row)
    return True


def carries_nothing(deps: Dependences, dims: Mapping[int, int]) -> bool:
    """Whether statements that share a loop depend on each other only inside its iterations.

    Mostly they do so wherever loops end, which is asked once for all kernels with these accesses.
    """
    known, key = _known_to_carry(deps), tuple(dims.items())
    if key not in known:
        anywhere = deps.anywhere is None or not carries_nothing(deps.anywhere, dims)
        known[key] = anywhere and _carries(deps, dims)
    return not known[key]


@remembered
def _known_to_carry(deps: Dependences) -> dict[tuple[tuple[int, int], ...], bool]:
    """Whether loops, by their dimensions, carry a dependence, as far as that was asked."""
    del deps
    return {}


def _carries(deps: Dependences, dims: Mapping[int, int]) -> bool:
    row = isl.MultiUnionPwAff(loop_row(dims, {s: _ranks(deps)[s] for s in dims}))
    return not deps.order.is_subset(deps.order.eq_at_multi_union_pw_aff(row))


def loop_row(dims: Mapping[int, int], ranks: Mapping[int, int], expr: str = "{d}") -> str:
    """Isl text of a schedule row over the statements of `ranks`; `{d}` in `expr` stands for each one's dimension."""
    pieces = [
        f"S{s}[{', '.join(f'd{i}' for i in range(rank))}] -> [({expr.replace('{d}', f'd{dims[s]}')})]"
        for s, rank in ranks.items()
        if s in dims
    ]
    return "[{ " + "; ".join(pieces) + " }]"


@remembered
def linked(deps: Dependences) -> frozenset[frozenset[int]]:
    """The pairs of statements between which there are dependences."""
    pairs = set[frozenset[int]]()

    deps.order.foreach_map(lambda found: pairs.add(frozenset(statement_numbers(found))))
    return frozenset(pairs)


@remembered
def _ranks(deps: Dependences) -> dict[int, int]:
    """How many dimensions each statement has."""
    ranks: dict[int, int] = {}

    def note(instances: isl.Set) -> None:
        ranks[int(instances.get_tuple_name().removeprefix("S"))] = instances.dim(isl.dim_type.set)

    deps.domain.foreach_set(note)
    return ranks
