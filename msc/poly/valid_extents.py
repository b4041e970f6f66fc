"""The valid part of a tensor whose dimension is smaller than its capacity.

Shapes, strides and schedules are those of the largest sizes, the capacities. A size is an unknown: dimension k of an
affine expression stands for the k-th size. The valid part of a tensor consists of the indices below bounds over the
sizes. A dimension that merges several is described by its factors, outermost first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import gcd, prod
from typing import TypeAlias

from xdsl.ir.affine import AffineBinaryOpExpr, AffineBinaryOpKind, AffineConstantExpr, AffineExpr

from msc.poly.affine import LinearForm, bounds, linear_form, simplified


class NotABox(Exception):
    """Loops with bounds over the sizes cannot run through the valid part; the message says why."""


@dataclass(frozen=True)
class Size:
    """A size that a call decides, between `low` and `high`."""

    name: str
    low: int
    high: int


@dataclass(frozen=True)
class Factor:
    """Indices 0 to `capacity` of which those below `bound` are valid; all of them where that is None.

    The bound is in canonical form: factors that mean the same are equal.
    """

    capacity: int
    bound: AffineExpr | None = None

    def __post_init__(self) -> None:
        if self.bound is not None:
            object.__setattr__(self, "bound", canonical(self.bound))


ValidExtent: TypeAlias = tuple[Factor, ...]
"""The factors of one dimension: its index is a number whose digits they are. Never empty."""

ValidShape: TypeAlias = tuple[ValidExtent, ...]


def quotient(expr: AffineExpr) -> tuple[LinearForm, int] | None:
    """The expression as a linear form divided by a number, rounded down, in lowest terms; None if it is none."""
    form = linear_form(expr)
    if form is not None:
        return form, 1
    match expr:
        case AffineBinaryOpExpr(AffineBinaryOpKind.Add, lhs, rhs):
            a, b = quotient(lhs), quotient(rhs)
            if a is None or b is None or a[1] > 1 < b[1]:
                return None
            (top, divisor), (added, _) = (a, b) if b[1] == 1 else (b, a)
            total = linear_form(top.expression() + added.expression() * divisor)
        case AffineBinaryOpExpr(AffineBinaryOpKind.FloorDiv, lhs, AffineConstantExpr(value=n)):
            inner = quotient(lhs)
            if inner is None:
                return None
            total, divisor = inner[0], inner[1] * n
        case _:
            return None
    assert total is not None  # a sum of linear forms
    common = gcd(divisor, *total.coefficients.values())
    coefficients = {d: c // common for d, c in total.coefficients.items()}
    return LinearForm(coefficients, total.constant // common), divisor // common


def canonical(bound: AffineExpr) -> AffineExpr:
    """The same number of elements as a linear form or a quotient of one, where it is either."""
    found = quotient(bound)
    if found is None:
        return bound
    return found[0].expression() if found[1] == 1 else found[0].expression() // found[1]


def whole(shape: Iterable[int]) -> ValidShape:
    """All of a tensor."""
    return tuple((Factor(size),) for size in shape)


def is_whole(dim: ValidExtent) -> bool:
    """Whether all indices of a dimension are valid."""
    return all(factor.bound is None for factor in dim)


def merged(factors: Iterable[Factor]) -> ValidExtent:
    """The dimension of these factors, in as few as describe it: what is whole goes into the factor before."""
    found: list[Factor] = []
    for factor in factors:
        if factor.bound is None and (found or factor.capacity == 1):
            if found:
                last = found[-1]
                bound = None if last.bound is None else simplified(last.bound * factor.capacity)
                found[-1] = Factor(last.capacity * factor.capacity, bound)
        else:
            found.append(factor)
    return tuple(found) or (Factor(1),)


def upper_bound(dim: ValidExtent) -> AffineExpr | None:
    """The bound of a loop that runs through all valid indices of a dimension, and dead ones if it has several factors.

    None for the whole dimension.
    """
    first, inner = dim[0], prod(f.capacity for f in dim[1:])
    return None if first.bound is None else simplified(first.bound * inner)


def size_at(dim: ValidExtent, sizes: Sequence[int]) -> int:
    """The number of valid indices."""
    return prod(f.capacity if f.bound is None else f.bound.eval(sizes, ()) for f in dim)


def meet(a: ValidExtent, b: ValidExtent) -> ValidExtent:
    """The indices valid in both. Raises NotABox where two sizes that may differ meet."""
    if is_whole(a) or a == b:
        return b
    if is_whole(b):
        return a
    if len(a) == len(b) == 1 and a[0].bound is not None and b[0].bound is not None:
        ours, theirs = quotient(a[0].bound), quotient(b[0].bound)
        if ours is not None and theirs is not None and ours[1] == theirs[1]:
            first, second = ours[0], theirs[0]
            if first.coefficients == second.coefficients:
                return a if first.constant < second.constant else b
    raise NotABox("dimensions of different open sizes are combined")


def fitting(bound: AffineExpr, extent: int, sizes: Sequence[Size]) -> ValidExtent:
    """The dimension of `extent` indices below `bound`, which is a bound for all of them at the largest sizes."""
    least, most = bounds(bound, ranges_of(sizes))
    if least >= extent:
        return (Factor(extent),)
    if most != extent or least < 0:
        raise NotABox(f"{extent} elements are cut from a dimension that may have {least}")
    return (Factor(extent, bound),)


def reshaped(valid: ValidShape, shape: Sequence[int]) -> ValidShape:
    """The valid part of a tensor under another shape. Raises NotABox where it has no form there."""
    if 0 in shape:
        return _emptied(reshaped(tuple(map(_with_elements, valid)), [max(size, 1) for size in shape]), shape)
    old, result = list(valid), list[ValidExtent]()
    place = 0
    for group in _groups([prod(f.capacity for f in dim) for dim in old], shape):
        dims = old[place : place + group[0]]
        place += group[0]
        sizes = shape[len(result) : len(result) + group[1]]
        result += whole(sizes) if all(map(is_whole, dims)) else _cut([f for dim in dims for f in dim], sizes)
    return tuple(result)


def _with_elements(dim: ValidExtent) -> ValidExtent:
    return tuple(factor if factor.capacity else Factor(1) for factor in dim)


def _emptied(valid: ValidShape, shape: Sequence[int]) -> ValidShape:
    return tuple(dim if size else (Factor(0),) for dim, size in zip(valid, shape, strict=True))


def _groups(old: Sequence[int], new: Sequence[int]) -> list[tuple[int, int]]:
    """How many neighbouring dimensions of both shapes hold the same elements, each group as small as can be.

    The extents are at least 1. Raises NotABox where the shapes hold different numbers: what is left of a tensor without
    elements.
    """
    if prod(old) != prod(new):
        raise NotABox("a tensor without elements changes its shape")
    groups: list[tuple[int, int]] = []
    i = k = 0
    while i < len(old) or k < len(new):
        start, a, b = (i, k), 1, 1
        while a != b or (i, k) == start:
            if i < len(old) and (a <= b or k == len(new)):
                a, i = a * old[i], i + 1
            else:
                b, k = b * new[k], k + 1
        groups.append((i - start[0], k - start[1]))
    return groups


def _cut(factors: Sequence[Factor], shape: Sequence[int]) -> list[ValidExtent]:
    rest, dims = list(merged(factors)), list[ValidExtent]()
    for size in shape:
        taken, product = list[Factor](), 1
        while product < size:
            if not rest:
                raise NotABox("a dimension of open size is split")
            factor = rest.pop(0)
            if (size // product) % factor.capacity:
                factor, inner = _split(factor, size // product)
                rest.insert(0, inner)
            taken.append(factor)
            product *= factor.capacity
        if product != size:
            raise NotABox("a dimension of open size is split")
        dims.append(merged(taken))
    return dims


def _split(factor: Factor, outer: int) -> tuple[Factor, Factor]:
    """A factor as one of `outer` and one inside it."""
    inner = factor.capacity // outer
    if outer * inner != factor.capacity:
        raise NotABox("a dimension of open size is split")
    return Factor(outer, None if factor.bound is None else _exactly(factor.bound, inner)), Factor(inner)


def _exactly(bound: AffineExpr, divisor: int) -> AffineExpr:
    form = linear_form(bound)
    if form is None or any(c % divisor for c in (*form.coefficients.values(), form.constant)):
        raise NotABox("a dimension of open size is split into parts that it does not fill")
    return LinearForm({d: c // divisor for d, c in form.coefficients.items()}, form.constant // divisor).expression()


def below(bound: AffineExpr, step: int, offset: int) -> AffineExpr:
    """The bound of i where `step * i + offset` stays below `bound`."""
    return canonical((bound + (step - 1 - offset)) // step)


def ranges_of(sizes: Sequence[Size]) -> Mapping[int, range]:
    """The values of the sizes, by dimension of expressions over them."""
    return {k: range(size.low, size.high + 1) for k, size in enumerate(sizes)}


def text(bound: AffineExpr, sizes: Sequence[Size]) -> str:
    """A bound for people, with the sizes' names."""
    found = quotient(bound)
    if found is None:
        return str(bound)
    form, divisor = found
    terms = [f"{sizes[d].name}" if c == 1 else f"{c} * {sizes[d].name}" for d, c in sorted(form.coefficients.items())]
    if form.constant or not terms:
        terms.append(str(form.constant))
    total = " + ".join(terms)
    return total if divisor == 1 else f"({total}) / {divisor}"


def over_symbols(expr: AffineExpr) -> AffineExpr:
    """An expression over sizes with symbols for its dimensions."""
    count = max(expr.used_dims(), default=-1) + 1
    return expr.replace_dims_and_symbols([AffineExpr.symbol(k) for k in range(count)], [])
