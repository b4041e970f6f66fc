"""Copies of what a reduction reads, each part made in front of the loops that read it again and again.

A product of large matrices reads its right operand in panels of columns. Rows of a panel lie a row of the matrix apart,
in a page each and in few cache sets. A copy that holds one panel at a time is made where the panel is about to be used,
stays in L2, and is written over by the next one. `pack-operands` decides which products have one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from xdsl.ir.affine import AffineDimExpr

from msc.cost.access import strides
from msc.poly.model import KernelModel
from msc.poly.plan import Group, Member, Plan
from msc.poly.scalar import Read, reads


def staged(model: KernelModel) -> list[int]:
    """Statements that only copy to an internal array what reductions read, more often than it is written."""
    return [k for k in range(len(model.statements)) if _is_staged(model, k)]


def _is_staged(model: KernelModel, number: int) -> bool:
    statement = model.statements[number]
    array = statement.target
    if not isinstance(statement.body, Read) or statement.combine or model.arrays[array].kind != "internal":
        return False
    readers = _readers(model, array)
    again = all(model.statements[r].combine and _repeats(model, r, array) for r in readers)
    return bool(readers) and again and sum(s.target == array for s in model.statements) == 1


def _readers(model: KernelModel, array: int) -> list[int]:
    return [k for k, s in enumerate(model.statements) if any(r.operand == array for r in reads(s.body))]


def _repeats(model: KernelModel, reader: int, array: int) -> bool:
    """Whether some loop of the reader over what it writes reads the same again."""
    statement = model.statements[reader]
    moved = _dims(model, reader, array).values()
    return any(d not in moved and statement.extents[d] > 1 for d in statement.write.used_dims())


def _dims(model: KernelModel, number: int, array: int) -> dict[int, int]:
    """The dimension of a statement that indexes each axis of an array, where one does."""
    accesses = model.statements[number].accesses()
    maps = [map_ for k, (a, map_) in enumerate(accesses) if a == array and (k or model.statements[number].target == a)]
    return {axis: e.position for axis, e in enumerate(maps[0].results) if isinstance(e, AffineDimExpr)}


def with_staged(model: KernelModel, plan: Plan, copies: Sequence[int], reasons: list[str]) -> Plan:
    """The plan of all other statements with the copies in front of the loops that they are not in, which come last."""
    for number in copies:
        plan = _with_copy(model, plan, number, reasons)
    return plan


def _with_copy(model: KernelModel, plan: Plan, number: int, reasons: list[str]) -> Plan:
    array = model.statements[number].target
    reader = _readers(model, array)[0]
    axis_of = {dim: axis for axis, dim in _dims(model, reader, array).items()}
    written = _dims(model, number, array)
    members = [_joined(member, number, written.get(axis_of.get(member.dims[reader], -1))) for member in plan.band]
    around = tuple(m for m in members if number in m.dims)
    if not around:
        return replace(plan, first=(*plan.first, Group((number,), own_loops(model, number, ()))))
    band = (*around, *(m for m in members if number not in m.dims))
    name = model.operations[model.statements[number].operation]
    reasons.append(f"{name} a part at a time, once for all {', '.join(m.name for m in band[len(around) :])}")
    return replace(plan, band=band, groups=(Group((number,), own_loops(model, number, around)), *plan.groups))


def _joined(member: Member, number: int, dim: int | None) -> Member:
    dims: Mapping[int, int] = member.dims if dim is None else {**member.dims, number: dim}
    return replace(member, dims=dims)


def own_loops(model: KernelModel, number: int, band: Sequence[Member]) -> tuple[Member, ...]:
    """Loops over the dimensions of a statement that the band does not have.

    Those that stride furthest are outermost.
    """
    statement = model.statements[number]
    shared = {m.dims[number] for m in band}
    own = [d for d, extent in enumerate(statement.extents) if d not in shared and extent > 1]
    reach = {d: sum(abs(s) for s in strides(model, statement, d)) for d in own}
    return tuple(
        Member(statement.names[d], statement.extents[d], {number: d}) for d in sorted(own, key=lambda d: -reach[d])
    )
