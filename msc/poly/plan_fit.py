"""Whether a plan that a person wrote is one for its kernel: its loops are loops of statements, its sizes are theirs.

Legality, that no dependence is broken, is another question (`msc.poly.tree`), which isl answers for plans that fit.
"""

from __future__ import annotations

from collections.abc import Iterator

from msc.poly.model import KernelModel
from msc.poly.plan import Group, Member, Plan


def check_fit(model: KernelModel, plan: Plan) -> None:
    """Raise ValueError, naming the loop or the statement, when a plan does not fit its kernel."""
    if any(number >= len(model.statements) for number in _statements(plan)):
        _check_complete(model, plan)  # before its loops, which are of other statements then
    for member in _members(plan):
        _check_member(model, member)
    for group in (*plan.first, *plan.groups):
        for member in group.inner:
            _check_inner(member, group)
    for member in _members(plan):
        if member.rest:
            _check_rest(model, plan, member)
    for number in range(len(model.statements)):
        _check_statement(number, [m for m in _members(plan) if number in m.dims])
    _check_complete(model, plan)


def _check_complete(model: KernelModel, plan: Plan) -> None:
    """Each statement runs once."""
    run = _statements(plan)
    count = len(model.statements)
    wrong = [f"S{s} is missing" for s in range(count) if s not in run]
    wrong += [f"S{s} runs {run.count(s)} times" for s in range(count) if run.count(s) > 1]
    wrong += [f"there is no S{s}" for s in sorted(set(run)) if s >= count]
    if wrong:
        raise ValueError(f"{', '.join(wrong)}; a schedule runs every statement once")


def _statements(plan: Plan) -> list[int]:
    return [s for group in (*plan.first, *plan.groups) for s in group.statements]


def _members(plan: Plan) -> Iterator[Member]:
    yield from plan.band
    for group in (*plan.first, *plan.groups):
        yield from group.inner


def _check_member(model: KernelModel, member: Member) -> None:
    if not 1 <= member.tile <= max(member.extent, 1):
        raise ValueError(f"loop {member.name}: a tile is 1 to {member.extent} iterations, not {member.tile}")
    for number, dimension in member.dims.items():
        extents = model.statements[number].extents if number < len(model.statements) else ()
        if dimension >= len(extents):
            raise ValueError(f"loop {member.name}: there is no S{number}.{dimension}")
        if extents[dimension] != member.extent:
            raise ValueError(f"loop {member.name}: S{number}.{dimension} has extent {extents[dimension]}")


def _check_rest(model: KernelModel, plan: Plan, member: Member) -> None:
    """A rest is of the last tile of a shared vector loop, and runs along another loop of its statements."""
    if not any(_may_carry(m, member, plan) for m in _members(plan)):
        raise ValueError(f"loop {member.name}: its rest runs along no tile or inner loop of its statements")
    last = member.extent % member.tile or (member.tile if member.tile == member.extent else 0)
    if member not in plan.band or not member.vector or not member.rest <= last:
        raise ValueError(f"loop {member.name}: only a part of the last tile of a shared vector loop is a rest")
    if any(model.statements[s].bound(d) is not None for s, d in member.dims.items()):
        raise ValueError(f"loop {member.name}: what a call's sizes leave is not known")


def _may_carry(along: Member, member: Member, plan: Plan) -> bool:
    """Whether a rest of `member` may run along a loop: a tile of all its statements, or an inner loop of some."""
    if along.name != member.along or along is member:
        return False
    if along in plan.band:
        return along.dims.keys() == member.dims.keys() and along.tile > 1
    return not along.vector and along.dims.keys() <= member.dims.keys()


def _check_inner(member: Member, group: Group) -> None:
    if set(member.dims) != set(group.statements):
        raise ValueError(f"loop {member.name} is not a loop of every statement that runs under it")
    if member.tile > 1:
        raise ValueError(f"loop {member.name}: tile {member.tile}: only loops that all statements share have tiles")
    if member.parallel:
        raise ValueError(f"loop {member.name}: only loops that all statements share can be parallel")


def _check_statement(number: int, members: list[Member]) -> None:
    dimensions = [m.dims[number] for m in members]
    if len(set(dimensions)) < len(dimensions):
        raise ValueError(f"two loops run over the same dimension of S{number}")
    if sum(m.vector for m in members) > 1:
        raise ValueError(f"two loops of S{number} are vector")
