"""Statements that sum products of two arrays, as matrix units multiply them: which dimensions are m, n and k."""

from __future__ import annotations

from dataclasses import dataclass

from msc.poly.model import KernelModel
from msc.poly.scalar import Apply, Cast, Read, Scalar
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
