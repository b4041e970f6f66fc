"""Statements that sum products of two arrays, as matrix units multiply them: which dimensions are m, n and k."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from msc.poly.alignment import aligned
from msc.poly.dependences import Dependences
from msc.poly.model import KernelModel
from msc.poly.outer_band import carries_nothing
from msc.poly.scalar import Apply, Cast, Read, Scalar
from msc.poly.schedule_tree.nodes import Axis
from msc.targets.abilities import Role


@dataclass(frozen=True)
class Contraction:
    """`c[batch, m, n] += a[batch, m, k] b[batch, k, n]`: the dimensions of the statement by their role.

    Dimensions of one iteration have none.

    A convolution is one: its pixels are m, its output channels n, its input channels and taps k, its groups batch.
    """

    statement: int
    a: Read
    b: Read
    target: int
    batch: tuple[int, ...]
    m: tuple[int, ...]
    n: tuple[int, ...]
    k: tuple[int, ...]

    def role(self, dimension: int) -> Role:
        """What a dimension of the statement is."""
        if dimension in self.batch:
            return "batch"
        return "m" if dimension in self.m else "n" if dimension in self.n else "k"


def contraction_of(model: KernelModel, number: int) -> Contraction | None:
    """What statement `number` contracts; None for a statement that is no sum of products of two reads."""
    statement = model.statements[number]
    product = _converted(statement.body)
    if statement.combine != "add" or not isinstance(product, Apply) or product.op != "mul":
        return None
    a, b = (_read(argument) for argument in product.args)
    if a is None or b is None:
        return None
    in_a, in_b, written = (set(x) for x in (a.index.used_dims(), b.index.used_dims(), statement.write.used_dims()))
    dims = [d for d in range(len(statement.extents)) if statement.extents[d] > 1]
    batch = tuple(d for d in dims if d in in_a & in_b & written)
    m = tuple(d for d in dims if d in (in_a & written) - in_b)
    n = tuple(d for d in dims if d in (in_b & written) - in_a)
    k = tuple(d for d in dims if d in (in_a & in_b) - written)
    if len(batch) + len(m) + len(n) + len(k) < len(dims):
        return None
    return Contraction(number, a, b, statement.target, batch, m, n, k)


def contractions(model: KernelModel) -> list[Contraction]:
    """All contractions of a kernel."""
    found = (contraction_of(model, number) for number in range(len(model.statements)))
    return [each for each in found if each is not None]


def _read(scalar: Scalar) -> Read | None:
    """A read, seen through conversions; None for one whose index is data."""
    read = _converted(scalar)
    return read if isinstance(read, Read) and not read.indirect else None


def _converted(scalar: Scalar) -> Scalar:
    """What conversions convert."""
    while isinstance(scalar, Cast):
        scalar = scalar.arg
    return scalar


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
