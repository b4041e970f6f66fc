"""The proof that a tree respects the dependences of its kernel: isl shows that the sets of violations are empty.

Order: every source runs before its sinks; updates of one element, which are associative, run in any order. Parallel:
there is no dependence between two iterations of the loop. Vector: a statement runs for all lanes before the next one.
A dependence between lanes is therefore respected only if its source precedes its sink; updates of one element are
either those of all lanes of a vector, which are summed separately, or each lane has an element of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace

import islpy as isl

from msc.poly.dependences import Dependences, statement_numbers, tuple_of, valid_domain
from msc.poly.kernel_text import array_names
from msc.poly.model import KernelModel
from msc.poly.outer_band import carries_nothing, loop_row
from msc.poly.schedule_tree.nodes import Block, Loop, Run, ScheduleError, Tree, below, copies, walk
from msc.poly.schedule_tree.to_isl import IslTree, LoopRow, PlaceRows


def prove(model: KernelModel, deps: Dependences, tree: Tree, schedule: IslTree) -> None:
    """Raise ScheduleError for the first clause that breaks a dependence."""
    for problem in broken(model, deps, tree, schedule):
        raise problem


def broken(model: KernelModel, deps: Dependences, tree: Tree, schedule: IslTree) -> Iterator[ScheduleError]:
    """The clauses of a tree that break a dependence."""
    if not violated(schedule.schedule, deps).is_empty():
        source, sink = _first_violated(schedule.schedule, deps)
        yield ScheduleError(f"S{sink} runs before S{source} has computed or read its data", _line_of(tree, sink))
    for row in schedule.loops:
        if row.loop.mark in ("parallel", "vector") and carries_nothing(deps, tree.axis(row.loop.axis).dims):
            continue
        if row.loop.mark == "parallel" and not _carried(row, deps.order).is_empty():
            yield ScheduleError(
                f"iterations of {row.loop.axis} depend on each other: it is not parallel", row.loop.line
            )
        if row.loop.mark == "vector" and _lanes_collide(model, tree, row, deps):
            yield ScheduleError(f"lanes of {row.loop.axis} depend on each other: it is no vector loop", row.loop.line)
    copied = copies(tree)
    for rows in schedule.places:
        own = tuple(place for place in rows.places if id(place) not in copied)
        yield from lost(model, deps, replace(rows, places=own))


def _line_of(tree: Tree, statement: int) -> int:
    return next((run.line for run in _runs(tree.body) if statement in run.statements), 0)


def _runs(block: Block) -> Iterator[Run]:
    return (node for node in walk(block) if isinstance(node, Run))


def violated(schedule: isl.Schedule, deps: Dependences) -> isl.UnionMap:
    """The strict dependences whose source does not run before their sink; empty for a legal schedule."""
    return _backwards(schedule, deps.strict, isl.Map.lex_lt)


def _first_violated(schedule: isl.Schedule, deps: Dependences) -> tuple[int, int]:
    """The statements of a strict dependence that is broken."""
    found: list[tuple[int, int]] = []

    def visit(pairs: isl.Map) -> None:
        if not found and not _backwards(schedule, isl.UnionMap.from_map(pairs), isl.Map.lex_lt).is_empty():
            found.append(statement_numbers(pairs))

    deps.strict.foreach_map(visit)
    return found[0]


def reversed_pairs(schedule: isl.Schedule, pairs: isl.UnionMap) -> isl.UnionMap:
    """The pairs of instances whose first runs after its second; the same instance is no such pair."""
    return _backwards(schedule, pairs, isl.Map.lex_le)


def _backwards(schedule: isl.Schedule, pairs: isl.UnionMap, legal: Callable[[isl.Space], isl.Map]) -> isl.UnionMap:
    time = schedule.get_map().intersect_domain(schedule.get_domain())
    found: list[isl.Map] = []
    in_time = pairs.apply_domain(time).apply_range(time)
    in_time.foreach_map(lambda m: found.append(m.subtract(legal(m.get_space().domain()))))
    wrong = isl.UnionMap.empty(pairs.get_space())
    for times in found:
        wrong = wrong.union(isl.UnionMap.from_map(times))
    return wrong


def _inside(row: LoopRow | PlaceRows, pairs: isl.UnionMap) -> isl.UnionMap:
    """The pairs of instances in one iteration of the loops around."""
    inside = pairs.intersect_domain(row.within).intersect_range(row.within)
    for above in row.above:
        inside = inside.eq_at_multi_union_pw_aff(above)
    return inside


def _carried(row: LoopRow, order: isl.UnionMap) -> isl.UnionMap:
    """The dependences between different iterations of a loop, in one iteration of those around it."""
    inside = _inside(row, order)
    return inside.subtract(inside.eq_at_multi_union_pw_aff(row.row))


def _lanes_collide(model: KernelModel, tree: Tree, row: LoopRow, deps: Dependences) -> bool:
    """Whether a dependence between lanes of a vector loop has its source not before its sink."""
    dims = tree.axis(row.loop.axis).dims
    summed = [s for s in row.statements if dims[s] in model.statements[s].reduced]
    order = deps.order.subtract(_from(model, deps.updates, summed))
    place = {s: k for k, run in enumerate(_runs(row.loop.body)) for s in run.statements}
    position = {s: i for run in _runs(row.loop.body) for i, s in enumerate(run.statements)}
    collides = False

    def visit(pairs: isl.Map) -> None:
        nonlocal collides
        source, sink = statement_numbers(pairs)
        in_order = (place[source], position[source]) < (place[sink], position[sink])
        collides = collides or not in_order or _crosses_loop(model, tree, row.loop, pairs)

    _carried(row, order).foreach_map(visit)
    return collides


def _crosses_loop(model: KernelModel, tree: Tree, vector: Loop, pairs: isl.Map) -> bool:
    """Whether pairs are in different iterations of a loop below a vector loop: its iterations run for all lanes."""
    numbers = set(statement_numbers(pairs))
    ranks = {s: len(model.statements[s].extents) for s in numbers}
    inner = (n for n in walk(vector.body) if isinstance(n, Loop) and numbers <= below(n))
    dims = [tree.axis(loop.axis).dims for loop in inner]
    together = isl.UnionMap.from_map(pairs)
    rows = [isl.MultiUnionPwAff(loop_row(each, ranks)) for each in dims]
    return any(not together.subtract(together.eq_at_multi_union_pw_aff(row)).is_empty() for row in rows)


def lost(model: KernelModel, deps: Dependences, rows: PlaceRows) -> Iterator[ScheduleError]:
    """Places whose arrays are read where they do not live: in another iteration, or below another node."""
    names, runs = array_names(model), valid_domain(model)
    for place in rows.places:
        array = names.index(place.array)
        writers = [s for s, statement in enumerate(model.statements) if statement.target == array]
        flow = _from(model, deps.flow, writers).intersect_domain(runs).intersect_range(runs)
        here = _inside(rows, flow)
        crossing = flow.intersect_domain(rows.within).union(flow.intersect_range(rows.within)).subtract(here)
        if not crossing.is_empty():
            message = f"{place.array} is read where it has no storage, outside of this block or in another iteration"
            yield ScheduleError(message, place.line)


def _from(model: KernelModel, pairs: isl.UnionMap, sources: Collection[int]) -> isl.UnionMap:
    """The pairs whose first is an instance of some statements."""
    instances = "; ".join(tuple_of(s, len(model.statements[s].extents)) for s in sources)
    return pairs.intersect_domain(isl.UnionSet(f"{{ {instances} }}"))
