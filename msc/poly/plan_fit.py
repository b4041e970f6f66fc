"""Whether a plan that a person wrote is one for its kernel: its loops are loops of statements, its sizes are theirs.

Legality, that no dependence is broken, is another question (`msc.poly.tree`), which isl answers for plans that fit.
"""

from __future__ import annotations

from collections.abc import Iterator

from msc.poly.model import KernelModel
from msc.poly.plan import Group, Member, Plan


def check_fit(model: KernelModel, plan: Plan) -> None:
    """Raise ValueError, naming the loop, when a plan does not fit its kernel."""
    for member in _members(plan):
        _check_member(model, member)
    for group in (*plan.first, *plan.groups):
        for member in group.inner:
            _check_inner(member, group)
    for number in range(len(model.statements)):
        _check_statement(number, [m for m in _members(plan) if number in m.dims])


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


def _check_inner(member: Member, group: Group) -> None:
    if set(member.dims) != set(group.statements):
        raise ValueError(f"loop {member.name} is not a loop of every statement that runs under it")
    if member.parallel:
        raise ValueError(f"loop {member.name}: only loops that all statements share can be parallel")


def _check_statement(number: int, members: list[Member]) -> None:
    dimensions = [m.dims[number] for m in members]
    if len(set(dimensions)) < len(dimensions):
        raise ValueError(f"two loops run over the same dimension of S{number}")
    if sum(m.vector for m in members) > 1:
        raise ValueError(f"two loops of S{number} are vector")
