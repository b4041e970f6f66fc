"""The loops that statements share: those around all of them, and those of neighbours. isl proves them legal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count, takewhile

from msc.cost.access import strides
from msc.poly.alignment import aligned, is_aligned
from msc.poly.dependences import Dependences
from msc.poly.model import KernelModel
from msc.poly.outer_band import (
    ScheduleLimit,
    SharedLoop,
    can_share,
    carries_nothing,
    linked,
    restricted,
    shared_loops,
)
from msc.poly.scalar import reads
from msc.poly.schedule_tree.moves import nested
from msc.poly.schedule_tree.nodes import Axis, Block, Loop, Node, Run, Tree


@dataclass(frozen=True)
class Group:
    """Statements that run one after the other at one point, in loops of their `own` over axes with any names."""

    statements: tuple[int, ...]
    own: tuple[Axis, ...] = ()


def initial(band: Sequence[Axis], groups: Sequence[Group], beside: Sequence[Axis] = ()) -> Tree:
    """The loops of the band around the groups, one after the other; `beside` are axes that get loops later."""
    tree, nodes = Tree((), Block()), list[Node]()
    for axis in (*beside, *band):
        tree, _ = declared(tree, axis)
    around = [Loop(axis.name, Block()) for axis in tree.axes[len(beside) :]]
    for group in groups:
        tree, node = grouped_node(tree, group)
        nodes.append(node)
    return replace(tree, body=nested(around, Block(tuple(nodes))))


def grouped_node(tree: Tree, group: Group, points: Sequence[Loop] = (), at: int | None = None) -> tuple[Tree, Node]:
    """The tree with the axes of a group, and the group's loops, `points` inside."""
    names, known = list[str](), len(tree.axes)
    for axis in group.own:
        tree, name = declared(tree, axis, None if at is None else at + len(tree.axes) - known)
        names.append(name)
    block = nested([*(Loop(name, Block()) for name in names), *points], Block((Run(group.statements),)))
    return tree, block.nodes[0]


def declared(tree: Tree, wanted: Axis, at: int | None = None) -> tuple[Tree, str]:
    """The tree with another axis, and its name: statements with nothing else of that name and extent share one."""
    for number in count():
        name = f"{wanted.name}_{number}" if number else wanted.name
        known = next((axis for axis in tree.axes if axis.name == name), None)
        if known is None:
            at = len(tree.axes) if at is None else at
            return replace(tree, axes=(*tree.axes[:at], replace(wanted, name=name), *tree.axes[at:])), name
        if known.extent == wanted.extent and not known.dims.keys() & wanted.dims.keys():
            joined = replace(known, dims={**known.dims, **wanted.dims})
            return replace(tree, axes=tuple(joined if axis is known else axis for axis in tree.axes)), name
    raise AssertionError


def own_loops(model: KernelModel, number: int, band: Sequence[Axis]) -> tuple[Axis, ...]:
    """Loops over the dimensions of a statement that the band does not have.

    Those that stride furthest are outermost.
    """
    statement = model.statements[number]
    shared = {axis.dims[number] for axis in band}
    own = [d for d, extent in enumerate(statement.extents) if d not in shared and extent > 1]
    reach = {d: sum(abs(s) for s in strides(model, statement, d)) for d in own}
    return tuple(
        Axis(statement.names[d], statement.extents[d], {number: d}) for d in sorted(own, key=lambda d: -reach[d])
    )


def shared_band(
    model: KernelModel, deps: Dependences, statements: Sequence[int], reasons: list[str]
) -> tuple[Axis, ...]:
    """The loops that all of some statements can share."""
    inside = deps if len(statements) == len(model.statements) else restricted(deps, statements, ())
    alignment = aligned(model, statements)
    loops = [
        SharedLoop(dims, True)
        for dims in (*alignment.loops, *alignment.by_digits)
        if carries_nothing(inside, dims) and end_together(model, dims)
    ]
    if not alignment.is_complete and _may_share_more(model, statements, loops):
        loops += _others(loops, _loops_of_isl(model, inside, statements, reasons))
    axes = [_axis(model, loop) for loop in loops]
    return tuple(sorted(axes, key=lambda axis: axis.dims[max(axis.dims)]))


def _may_share_more(model: KernelModel, statements: Sequence[int], known: Sequence[SharedLoop]) -> bool:
    """Whether the statements have dimensions of one extent besides those of the known loops.

    Where there are none isl is not asked: it takes minutes for windows that overlap, as a pooling's gradient has.
    """
    first, *others = (
        {n for d, n in enumerate(model.statements[s].extents) if all(loop.dims.get(s) != d for loop in known)}
        for s in statements
    )
    return bool(first.intersection(*others))


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


def _axis(model: KernelModel, loop: SharedLoop) -> Axis:
    statement, dim = min(loop.dims.items())
    widest = max(loop.dims, key=lambda s: len(model.statements[s].extents))
    name = model.statements[widest].names[loop.dims[widest]]
    return Axis(name, model.statements[statement].extents[dim], dict(loop.dims))


def end_together(model: KernelModel, dims: Mapping[int, int]) -> bool:
    """Whether these dimensions of statements end at the same place, as those of one loop have to."""
    return len({model.statements[s].bound(d) for s, d in dims.items()}) <= 1


def grouped(
    model: KernelModel, deps: Dependences, band: Sequence[Axis], statements: Sequence[int]
) -> tuple[Group, ...]:
    """Statements in order; neighbours that may share all their inner loops run in one group.

    Accumulators are cleared first of all: between two statements, that would keep them in loops of their own. What else
    reads nothing runs where it is first read.
    """
    groups: list[Group] = []
    for number in sorted(statements, key=lambda k: _place(model, k)):
        own = own_loops(model, number, band)
        merged = _merge(model, deps, band, groups[-1], number, own) if groups else None
        if merged is not None:
            groups[-1] = merged
        else:
            groups.append(Group((number,), own))
    return tuple(groups)


def _place(model: KernelModel, number: int) -> tuple[int, int]:
    """Where a statement runs among others: after those with a lower place, in the order of the program."""
    statement = model.statements[number]
    beside = [s for s in model.statements if s.target == statement.target and s is not statement]
    if any(reads(statement.body)):
        return number, 1
    if any(s.combine for s in beside):
        return -1, number
    readers = [k for k, s in enumerate(model.statements) if any(r.operand == statement.target for r in reads(s.body))]
    return (readers[0], 0) if readers and not beside else (number, 1)


def _merge(
    model: KernelModel, deps: Dependences, band: Sequence[Axis], group: Group, number: int, own: Sequence[Axis]
) -> Group | None:
    """The group with one more statement, if they run the same inner loops and isl finds that legal.

    Between statements that no dependence links only indices say which loops are the same.
    """
    if [m.extent for m in own] != [m.extent for m in group.own]:
        return None
    together = (*group.statements, number)
    if not own:
        return Group(together)
    fixed = [SharedLoop(m.dims, True) for m in band]
    wanted = [{**m.dims, **o.dims} for m, o in zip(group.own, own, strict=True)]
    if not all(end_together(model, dims) for dims in wanted):
        return None
    is_found = all(is_aligned(model, w) for w in wanted)
    if not is_found and linked(deps).isdisjoint(frozenset((s, number)) for s in group.statements):
        return None
    inner = restricted(deps, together, fixed)
    if not can_share(inner, wanted) or not (is_found or _finds(model, inner, together, wanted)):
        return None
    return Group(together, tuple(replace(m, dims=w) for m, w in zip(group.own, wanted, strict=True)))


def _finds(model: KernelModel, deps: Dependences, statements: Sequence[int], wanted: Sequence[dict[int, int]]) -> bool:
    """Whether isl too would share the loops."""
    try:
        found = [dict(loop.dims) for loop in shared_loops(model, deps, statements)]
    except ScheduleLimit:
        return False
    return all(w in found for w in wanted)
