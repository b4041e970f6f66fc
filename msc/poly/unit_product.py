"""Kernels that are one product, with the operations before and after each of its sums, for a matrix unit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from msc.poly.alignment import aligned
from msc.poly.contraction import Contraction, contractions
from msc.poly.dependences import Dependences
from msc.poly.model import KernelModel
from msc.poly.outer_band import carries_nothing
from msc.poly.schedule_tree.nodes import Axis
from msc.targets.abilities import Role


@dataclass(frozen=True)
class UnitProduct:
    """A kernel around one product: its axes by role, the statements before and after it."""

    contraction: Contraction
    axes: tuple[Axis, ...]
    roles: Mapping[str, Role]
    before: tuple[int, ...]
    after: tuple[int, ...]

    def of(self, role: Role) -> tuple[Axis, ...]:
        """The axes of a role, the outermost first."""
        return tuple(axis for axis in self.axes if self.roles[axis.name] == role)


def unit_product(model: KernelModel, deps: Dependences) -> UnitProduct | None:
    """A kernel as one product with what precedes and follows each of its sums; None for another kernel."""
    found = contractions(model)
    if len(found) != 1 or model.sizes:
        return None
    (contraction,) = found
    number = contraction.statement
    every = range(len(model.statements))
    shared = [dict(dims) for dims in aligned(model, list(every)).loops]
    shared = [dims for dims in shared if set(dims) == set(every) and carries_nothing(deps, dims)]
    statement = model.statements[number]
    long = {d for d, extent in enumerate(statement.extents) if extent > 1}
    if {dims[number] for dims in shared} != long - set(contraction.k) or not long:
        return None
    if any(_loops(model, s) != len(shared) for s in every if s != number):
        return None
    dims = [*shared, *({number: d} for d in contraction.k if d in long)]
    named = sorted(dims, key=lambda each: each[number])
    names = _distinct([statement.names[each[number]] for each in named])
    axes = tuple(Axis(name, statement.extents[each[number]], each) for name, each in zip(names, named, strict=True))
    roles: dict[str, Role] = {axis.name: contraction.role(axis.dims[number]) for axis in axes}
    return UnitProduct(contraction, axes, roles, tuple(range(number)), tuple(every[number + 1 :]))


def _loops(model: KernelModel, number: int) -> int:
    """The dimensions of a statement that need a loop."""
    return sum(extent > 1 for extent in model.statements[number].extents)


def _distinct(names: Sequence[str]) -> list[str]:
    return [name if names.index(name) == k else f"{name}_{k}" for k, name in enumerate(names)]
