"""The decisions for one kernel: which loops are shared, which runs as vectors, what is tiled, what runs in parallel.

isl proves which loops the statements can share; an instruction-count model picks the vector dimension; tiles of
reductions are chosen to keep accumulators in registers (`tiling`). Nothing is measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from math import gcd

from msc.cost.access import block_size, lanes_of, pieces, scalar_cost, statement_cost, strides, vectorisable
from msc.cost.prediction import KernelCost
from msc.poly.alignment import aligned
from msc.poly.dependences import Dependences
from msc.poly.model import KernelModel, KernelStatement
from msc.poly.outer_band import ScheduleLimit, SharedLoop, can_share, carries_nothing, restricted, shared_loops
from msc.poly.plan import Group, Member, Plan
from msc.poly.scalar import reads
from msc.poly.schedule_tree.nodes import Tree
from msc.poly.tile_parts import end_together
from msc.schedule.blocks import Blocked, is_handed_over, numbered_loops, with_blocks_outermost
from msc.schedule.loop_order import turned
from msc.schedule.plan_tree import tree_of
from msc.schedule.staging import own_loops, staged, with_staged
from msc.schedule.storage import stored
from msc.schedule.threads import NOWHERE, Surroundings, shared
from msc.schedule.tile_order import in_order
from msc.schedule.tiling import TileSearch
from msc.support.wording import counted
from msc.targets.machine import Machine

NEAR = 1.05
"""Times the fewest instructions that vectors along another loop may take to be compared by prediction."""
REST_THAT_MATTERS = 0.1
"""The part of a kernel's instructions from which a rest of its columns gets loops of its own."""


@dataclass
class _Option:
    """A plan with the reasons for it."""

    plan: Plan
    reasons: list[str]


@dataclass
class Decision:
    """A schedule with the reasons for it."""

    tree: Tree
    reasons: list[str] = field(default_factory=list[str])


def decide(
    model: KernelModel, deps: Dependences, target: Machine, threads: int, around: Surroundings = NOWHERE
) -> Decision:
    """The plan of a kernel on a target, among others; loops over blocks that they hand to each other are outermost."""
    reasons: list[str] = []
    first, copies = _borders(model, around.blocked), staged(model)
    rest = [k for k in range(len(model.statements)) if k not in first and k not in copies]
    band = _outer_band(model, deps, rest, reasons)
    groups = _groups(model, deps, band, rest)
    blocks = numbered_loops(model, band, around.blocked)
    inside = tuple(m for m in band if m not in blocks)
    cost = KernelCost(model, target, around.fresh(model))
    plan = _with_vectors(cost, inside, groups, threads or target.cores, reasons)
    plan = replace(plan, band=(*blocks, *plan.band))
    lanes = lanes_of(model, target)
    plan = with_blocks_outermost(model, plan, around.blocked, lanes, target.line_pair)
    plan = with_staged(model, plan, copies, reasons)
    before = tuple(_inner_vector(model, Group((k,), own_loops(model, k, ())), lanes) for k in first)
    plan = replace(plan, first=before)
    plan = shared(model, plan, target, threads, reasons, around)
    return Decision(stored(model, deps, tree_of(model, plan), target), reasons)


def _borders(model: KernelModel, blocked: Sequence[Blocked]) -> list[int]:
    """Statements that fill a part of an output with a constant, beside others that compute: they run first, alone.

    Where a block of the output is all that exists, they run for each.
    """
    updated = {s.target for s in model.statements if s.combine}
    fills = [
        k
        for k, s in enumerate(model.statements)
        if model.arrays[s.target].kind == "output" and s.target not in updated and not any(reads(s.body))
        if not is_handed_over(s.target, blocked)
    ]
    return fills if len(fills) < len(model.statements) else []


def plain(model: KernelModel, deps: Dependences, target: Machine) -> Tree:
    """The schedule that is always legal: statements one after the other, each in its own loops, no vectors."""
    plan = Plan((), tuple(Group((k,), own_loops(model, k, ())) for k in range(len(model.statements))))
    return stored(model, deps, tree_of(model, plan), target)


def _outer_band(
    model: KernelModel, deps: Dependences, statements: Sequence[int], reasons: list[str]
) -> tuple[Member, ...]:
    inside = deps if len(statements) == len(model.statements) else restricted(deps, statements, ())
    alignment = aligned(model, statements)
    loops = [
        SharedLoop(dims, True)
        for dims in alignment.loops
        if carries_nothing(inside, dims) and end_together(model, dims)
    ]
    if not alignment.is_complete:
        loops += _others(loops, _loops_of_isl(model, inside, statements, reasons))
    members = [_member(model, loop, _extent(model, loop)) for loop in loops]
    return tuple(sorted(members, key=lambda m: m.dims[max(m.dims)]))


def _loops_of_isl(
    model: KernelModel, deps: Dependences, statements: Sequence[int], reasons: list[str]
) -> list[SharedLoop]:
    """The outermost loops of isl's schedule that carry nothing and run equally often in every statement."""
    try:
        found = shared_loops(model, deps, statements)
    except ScheduleLimit:
        reasons.append("isl's operation limit was reached: loops that it may find are not shared")
        return []

    def fits(loop: SharedLoop) -> bool:
        alike = len({model.statements[s].extents[d] for s, d in loop.dims.items()}) == 1
        return loop.coincident and alike and end_together(model, loop.dims)

    return list(takewhile(fits, found))


def _others(known: Sequence[SharedLoop], found: Sequence[SharedLoop]) -> list[SharedLoop]:
    """The loops over dimensions that no known one runs over."""
    taken = {pair for loop in known for pair in loop.dims.items()}
    return [loop for loop in found if taken.isdisjoint(loop.dims.items())]


def _extent(model: KernelModel, loop: SharedLoop) -> int:
    statement, dim = min(loop.dims.items())
    return model.statements[statement].extents[dim]


def _member(model: KernelModel, loop: SharedLoop, extent: int) -> Member:
    widest = max(loop.dims, key=lambda s: len(model.statements[s].extents))
    return Member(model.statements[widest].names[loop.dims[widest]], extent, dict(loop.dims))


def _groups(
    model: KernelModel, deps: Dependences, band: Sequence[Member], statements: Sequence[int]
) -> tuple[Group, ...]:
    """Statements in order; neighbours that may share all their inner loops run in one group.

    Accumulators are cleared first of all: between two statements, that would keep them in loops of their own.
    """
    groups: list[Group] = []
    for number in sorted(statements, key=lambda k: any(reads(model.statements[k].body))):
        own = own_loops(model, number, band)
        merged = _merge(model, deps, band, groups[-1], number, own) if groups else None
        if merged is not None:
            groups[-1] = merged
        else:
            groups.append(Group((number,), own))
    return tuple(groups)


def _merge(
    model: KernelModel, deps: Dependences, band: Sequence[Member], group: Group, number: int, own: Sequence[Member]
) -> Group | None:
    """The group with one more statement, if they run the same inner loops and isl finds that legal."""
    if [m.extent for m in own] != [m.extent for m in group.inner]:
        return None
    together = (*group.statements, number)
    if not own:
        return Group(together)
    fixed = [SharedLoop(m.dims, True) for m in band]
    inner = restricted(deps, together, fixed)
    wanted = [{**m.dims, **o.dims} for m, o in zip(group.inner, own, strict=True)]
    if not can_share(inner, wanted) or not all(end_together(model, dims) for dims in wanted):
        return None
    known = aligned(model, together).loops
    if any(w not in known for w in wanted) and not _finds(model, inner, together, wanted):
        return None
    return Group(together, tuple(replace(m, dims=w) for m, w in zip(group.inner, wanted, strict=True)))


def _finds(model: KernelModel, deps: Dependences, statements: Sequence[int], wanted: Sequence[dict[int, int]]) -> bool:
    """Whether isl too would share the loops."""
    try:
        found = [dict(loop.dims) for loop in shared_loops(model, deps, statements)]
    except ScheduleLimit:
        return False
    return all(w in found for w in wanted)


def _with_vectors(
    cost: KernelCost, band: tuple[Member, ...], groups: tuple[Group, ...], threads: int, reasons: list[str]
) -> Plan:
    """The plan whose vectors take the fewest instructions, or nearly so and are predicted to be faster."""
    model = cost.model
    inner = sum(_inner_cost(model, g, cost.lanes) for g in groups)
    counts = {i: _band_cost(model, m, cost.lanes) for i, m in enumerate(band) if _can_carry(model, m)}
    ranked = sorted([(inner, 1, None), *((count, -i, i) for i, count in counts.items())], key=lambda c: c[:2])
    most = NEAR * ranked[0][0] if any(g.inner for g in groups) else 0
    carriers = [ranked[0][2], *(carrier for count, _, carrier in ranked[1:] if count <= most)]
    options = [_option(cost, band, groups, carrier, threads) for carrier in carriers]
    best = (
        options[0]
        if len(options) == 1
        else min(options, key=lambda d: cost.prediction(tree_of(model, d.plan), 1).cycles)
    )
    count = next(count for count, _, carrier in ranked if carrier == carriers[options.index(best)])
    reasons += [f"{best.reasons[0]} ({count:.0f} instructions estimated)", *best.reasons[1:]]
    return best.plan


def _option(
    cost: KernelCost, band: tuple[Member, ...], groups: tuple[Group, ...], carrier: int | None, threads: int
) -> _Option:
    """The plan with vectors along a loop of the band, or along inner ones."""
    model, lanes = cost.model, cost.lanes
    if carrier is None:
        plan = Plan(band, tuple(_inner_vector(model, g, lanes) for g in groups))
        return _Option(plan, ["vectors along inner loops"])
    reasons = [f"vectors of {lanes} along {band[carrier].name}"]
    tiled = Plan(_tiled(cost, band, carrier, groups, threads, reasons), groups)
    return _Option(turned(cost, tiled, reasons), reasons)


def _can_carry(model: KernelModel, member: Member) -> bool:
    return member.extent > 1 and all(vectorisable(model.statements[s]) for s in member.dims)


def _band_cost(model: KernelModel, member: Member, lanes: int) -> float:
    return sum(statement_cost(model, model.statements[s], d, lanes) for s, d in member.dims.items())


def _inner_cost(model: KernelModel, group: Group, lanes: int) -> float:
    vector = _inner_vector_member(model, group, lanes)
    if vector is None:
        return sum(scalar_cost(model.statements[s]) for s in group.statements)
    return _vector_cost(model, vector, lanes)


def _horizontal_cost(statement: KernelStatement, dim: int, lanes: int) -> float:
    """Instructions to reduce the lanes of accumulators to one element, if `dim` is reduced."""
    if dim not in statement.reduced:
        return 0
    width = min(lanes, statement.extents[dim])
    return statement.points / statement.extents[dim] * (2 * width.bit_length() + 2)


def _inner_vector_member(model: KernelModel, group: Group, lanes: int) -> Member | None:
    """The inner loop that runs cheapest as vectors, or None if elements one at a time are cheaper."""
    candidates = [m for m in group.inner if _can_carry(model, m)]
    if not candidates:
        return None
    best = min(candidates, key=lambda m: _vector_cost(model, m, lanes))
    scalar = sum(scalar_cost(model.statements[s]) for s in group.statements)
    return best if _vector_cost(model, best, lanes) < scalar else None


def _vector_cost(model: KernelModel, member: Member, lanes: int) -> float:
    """Instructions of an inner loop as vectors, horizontal reductions included."""
    horizontal = sum(_horizontal_cost(model.statements[s], d, lanes) for s, d in member.dims.items())
    return _band_cost(model, member, lanes) + horizontal


def _inner_vector(model: KernelModel, group: Group, lanes: int) -> Group:
    """The group with its vector loop innermost."""
    vector = _inner_vector_member(model, group, lanes)
    if vector is None:
        return group
    rest = tuple(m for m in group.inner if m is not vector)
    return Group(group.statements, (*rest, replace(vector, vector=True)))


def _tiled(
    cost: KernelCost,
    band: tuple[Member, ...],
    vector: int,
    groups: Sequence[Group],
    threads: int,
    reasons: list[str],
) -> tuple[Member, ...]:
    """The band with its vector member, and register tiles where reductions run below it (`tile_order`)."""
    model, target, lanes = cost.model, cost.target, cost.lanes
    below = [s for g in groups if g.inner for s in g.statements]
    reductions = [s for s in below if model.statements[s].reduced]
    if below and not reductions:
        return (*(m for i, m in enumerate(band) if i != vector), replace(band[vector], tile=lanes, vector=True))
    if not reductions:
        return _moved(model, band, vector, lanes, reasons)
    heaviest = max(reductions, key=lambda s: model.statements[s].points)
    others = [i for i in range(len(band)) if i != vector and band[i].extent > 1]
    group = next(g for g in groups if heaviest in g.statements)
    inner = {m.dims[heaviest]: m for m in group.inner if _may_be_summed(model, group, m)}
    reduction, columns_dim = model.statements[heaviest], band[vector].dims[heaviest]
    search = TileSearch(model, reduction, columns_dim, lanes, target, tuple(inner), cost.fresh)
    if row := search.whole_row(threads):
        reasons.append(f"sums of {row} {band[vector].name} at once: rows are read as they lie in memory")
        return (*(band[i] for i in range(len(band)) if i != vector), replace(band[vector], tile=row, vector=True))
    tile = search.best(tuple(band[i].dims[heaviest] for i in reversed(others)))
    counts = dict(tile.rows)
    rows = tuple(replace(band[i], tile=n) for i in others if (n := counts.get(band[i].dims[heaviest])) is not None)
    name = " x ".join(f"{m.name} {m.tile}" for m in rows) or "none 1"
    reasons.append(
        f"register tile {name} x {band[vector].name} {tile.width}: {counted(round(tile.cycles), 'cycle')} a step"
    )
    outer = tuple(m for i, m in enumerate(band) if i != vector and m.dims[heaviest] not in counts)
    columns = replace(band[vector], tile=tile.width, vector=True)
    if tile.rest:
        columns = _with_rest(columns, tile.rest, inner.get(tile.along, rows[0]), reasons)
    return in_order(model, heaviest, columns, (*outer, *rows), target)


def _moved(
    model: KernelModel, band: tuple[Member, ...], vector: int, lanes: int, reasons: list[str]
) -> tuple[Member, ...]:
    """The band without reductions: the vector member whole and innermost.

    Where some array has another member contiguous and this one apart (a transposition), tiles of a vector of both stay
    within L1.
    """
    others = [i for i in range(len(band)) if i != vector]
    row = next((i for i in others if _is_crossed(model, band[i], band[vector]) and band[i].extent > 1), None)
    if row is None:
        blocks = gcd(*(block_size(model.statements[s], d) for s, d in band[vector].dims.items()))
        columns = replace(band[vector], tile=blocks or band[vector].extent, vector=True)
        across = None if blocks else _across(model, band, vector, lanes)
        if across is None:
            return (*(band[i] for i in others), columns)
        columns = _with_rest(columns, columns.extent % lanes, band[across], reasons)
        tiled = replace(band[across], tile=min(lanes, band[across].extent))
        return (*(tiled if i == across else band[i] for i in others), columns)
    rows, columns = (replace(m, tile=min(lanes, m.extent)) for m in (band[row], band[vector]))
    reasons.append(f"tiles of {rows.tile} x {columns.tile} along {rows.name} and {columns.name}: one is read across")
    return (*(band[i] for i in others if i != row), rows, replace(columns, vector=True))


def _across(model: KernelModel, band: Sequence[Member], vector: int, lanes: int) -> int | None:
    """The member that fills vectors and along which what fills none costs least, if that saves a part that matters."""
    columns, rest = band[vector], band[vector].extent % lanes
    if not rest or columns.extent < lanes or _has_bound(model, columns):
        return None
    whole = _band_cost(model, columns, lanes)
    costs = {
        i: _band_cost(model, m, lanes) * rest / columns.extent
        for i, m in enumerate(band)
        if i != vector and m.extent >= lanes and _can_carry(model, m) and m.dims.keys() == columns.dims.keys()
    }
    best = min(costs, key=lambda i: costs[i], default=None)
    saved = 0 if best is None else whole / pieces(columns.extent, lanes) - costs[best]
    return best if saved > REST_THAT_MATTERS * whole else None


def _may_be_summed(model: KernelModel, group: Group, member: Member) -> bool:
    """Whether columns that fill no vector may run along an inner loop: that of one statement alone, of known extent."""
    return len(group.statements) == 1 and _can_carry(model, member) and not _has_bound(model, member)


def _with_rest(columns: Member, rest: int, along: Member, reasons: list[str]) -> Member:
    """The columns, of which the last run as vectors along another loop."""
    reasons.append(f"the last {rest} of {columns.name}, which fill no vector, along {along.name}")
    return replace(columns, rest=rest, along=along.name)


def _has_bound(model: KernelModel, member: Member) -> bool:
    return any(model.statements[s].bound(d) is not None for s, d in member.dims.items())


def _is_crossed(model: KernelModel, row: Member, vector: Member) -> bool:
    """Whether in some array neighbours along `row` are neighbours, and those along `vector` lie apart."""
    return any(
        along_row == 1 and along_vector > 1
        for s, d in row.dims.items()
        if s in vector.dims
        for along_row, along_vector in zip(
            strides(model, model.statements[s], d), strides(model, model.statements[s], vector.dims[s]), strict=True
        )
    )
