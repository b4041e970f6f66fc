"""Checks that a unit can perform a band: the nodes below an `intrinsic` mark are one product that fits the unit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import TypeAlias

from msc.poly.contraction import Contraction, contraction_of
from msc.poly.kernel_text import array_names
from msc.poly.model import KernelModel
from msc.poly.schedule_tree.nodes import Loop, Run, ScheduleError, Tree
from msc.targets.abilities import Abilities, Role, Unit

Places: TypeAlias = Mapping[str, Sequence[str]]
"""By array the scopes that it has in the nearest block that places it."""
ROLES: tuple[Role, ...] = ("batch", "m", "n", "k")


def check_intrinsic(
    model: KernelModel,
    tree: Tree,
    loop: Loop,
    left: Mapping[str, int],
    placed: Places,
    abilities: Abilities,
) -> None:
    """Raise ScheduleError unless the unit of `loop` performs it and all below it as one instruction.

    `left` are the iterations that loops around leave of each axis, `placed` the scopes of arrays there.
    """
    unit = abilities.units.get(loop.unit)
    if unit is None:
        known = f"there are {', '.join(abilities.units)}" if abilities.units else "it has none"
        raise ScheduleError(f"the machine has no unit {loop.unit}: {known}", loop.line)
    found = intrinsic_product(model, loop)
    if found is None:
        raise ScheduleError(
            f"{loop.unit} performs loops over the points of one sum of products of two arrays", loop.line
        )
    _check_types(model, found, unit, loop)
    for role, size in sizes(model, tree, found, left).items():
        if size > unit.limit(role):
            message = f"{unit.name} takes {unit.limit(role)} iterations of {role}, but its loops have {size}"
            raise ScheduleError(message, loop.line)
    _check_places(model, found, unit, loop, placed)


def intrinsic_product(model: KernelModel, loop: Loop) -> Contraction | None:
    """What an intrinsic computes: the statement below loops over points, right in each other, if it is a product."""
    node: object = loop
    while isinstance(node, Loop):
        if node.tile is not None or (node is not loop and node.mark) or node.body.clauses or len(node.body.nodes) != 1:
            return None
        node = node.body.nodes[0]
    if not isinstance(node, Run) or len(node.statements) != 1 or node.statements[0] >= len(model.statements):
        return None
    return contraction_of(model, node.statements[0])


def sizes(model: KernelModel, tree: Tree, product: Contraction, left: Mapping[str, int]) -> dict[Role, int]:
    """How many iterations of each role are left."""
    extents = dict(enumerate(model.statements[product.statement].extents))
    for axis in tree.axes:
        if product.statement in axis.dims:
            extents[axis.dims[product.statement]] = left.get(axis.name, axis.extent) or 1
    return {role: prod(extents[d] for d in _dims(product, role)) for role in ROLES}


def _dims(product: Contraction, role: Role) -> tuple[int, ...]:
    return {"batch": product.batch, "m": product.m, "n": product.n, "k": product.k}[role]


def _check_types(model: KernelModel, product: Contraction, unit: Unit, loop: Loop) -> None:
    types = (product.a.dtype, product.b.dtype, model.arrays[product.target].dtype)
    if unit.order(*types) is not None:
        return
    arrays, names = (product.a.operand, product.b.operand, product.target), array_names(model)
    for array, dtype, operand in zip(arrays, types, unit.operands, strict=True):
        if dtype not in operand.types:
            message = f"{names[array]} is {dtype}, and {unit.name} takes {', '.join(operand.types)} there"
            raise ScheduleError(message, loop.line)


def operand_scopes(product: Contraction, unit: Unit) -> Iterator[tuple[int, str, tuple[Role, Role]]]:
    """The arrays of a product, the scopes that a unit has them in, and the roles of their rows and columns."""
    yield product.a.operand, unit.scope_of(0), ("m", "k")
    yield product.b.operand, unit.scope_of(1), ("n", "k")
    yield product.target, unit.scope_of(2), ("m", "n")


def _check_places(model: KernelModel, product: Contraction, unit: Unit, loop: Loop, placed: Places) -> None:
    names = array_names(model)
    for array, scope, _ in operand_scopes(product, unit):
        lives = placed.get(names[array], ("memory",))
        if scope and scope not in lives:
            message = f"{names[array]} is placed in {', '.join(lives)}, but {unit.name} accesses it in {scope}"
            raise ScheduleError(message, loop.line)
