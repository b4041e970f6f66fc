"""Affine expressions as numbers: linear forms, canonical expressions and bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineMap,
)


@dataclass(frozen=True)
class LinearForm:
    """`sum(coefficients[d] * d) + constant`; no coefficient is zero."""

    coefficients: Mapping[int, int]
    constant: int

    def expression(self) -> AffineExpr:
        """The form as an expression, dimensions in order, constant last."""
        total: AffineExpr | None = None
        for d, c in sorted(self.coefficients.items()):
            term = AffineExpr.dimension(d) * c if c != 1 else AffineExpr.dimension(d)
            total = term if total is None else total + term
        if total is None:
            return AffineConstantExpr(self.constant)
        return total + self.constant if self.constant else total


def linear_form(expr: AffineExpr, ranges: Mapping[int, range] | None = None) -> LinearForm | None:
    """The expression as a linear form, or None if it divides.

    Divisions that the ranges of the dimensions decide are none: `(64 * i + j) floordiv 64` is `i` if j stays below 64.
    """
    if type(expr) is AffineDimExpr:  # types of expressions are abstract base classes, and slow where they do not match
        return LinearForm({expr.position: 1}, 0)
    if type(expr) is AffineConstantExpr:
        return LinearForm({}, expr.value)
    match expr:
        case AffineBinaryOpExpr(AffineBinaryOpKind.Add, lhs, rhs):
            a, b = linear_form(lhs, ranges), linear_form(rhs, ranges)
            return _sum(a, b) if a is not None and b is not None else None
        case AffineBinaryOpExpr(AffineBinaryOpKind.Mul, lhs, AffineConstantExpr(value=factor)):
            inner = linear_form(lhs, ranges)
            return _scaled(inner, factor) if inner is not None else None
        case AffineBinaryOpExpr(kind, lhs, AffineConstantExpr(value=divisor)) if ranges is not None:
            inner = linear_form(lhs, ranges)
            return _divided(inner, divisor, kind, ranges) if inner is not None else None
        case _:
            return None


def _divided(
    form: LinearForm, divisor: int, kind: AffineBinaryOpKind, ranges: Mapping[int, range]
) -> LinearForm | None:
    """Quotient or remainder of a form whose part that the divisor does not divide stays within one period."""
    whole = {d: c for d, c in form.coefficients.items() if c % divisor == 0}
    base = form.constant - form.constant % divisor
    rest = LinearForm({d: c for d, c in form.coefficients.items() if d not in whole}, form.constant - base)
    if kind is AffineBinaryOpKind.CeilDiv or not set(rest.coefficients) <= set(ranges):
        return None
    low, high = bounds(rest.expression(), ranges)
    if low < 0 or high >= divisor:
        return None
    quotient = LinearForm({d: c // divisor for d, c in whole.items()}, base // divisor)
    return quotient if kind is AffineBinaryOpKind.FloorDiv else rest


def _sum(a: LinearForm, b: LinearForm) -> LinearForm:
    merged = {d: a.coefficients.get(d, 0) + b.coefficients.get(d, 0) for d in {**a.coefficients, **b.coefficients}}
    return LinearForm({d: c for d, c in merged.items() if c}, a.constant + b.constant)


def _scaled(form: LinearForm, factor: int) -> LinearForm:
    return LinearForm({d: c * factor for d, c in form.coefficients.items() if factor}, form.constant * factor)


def simplified(expr: AffineExpr, ranges: Mapping[int, range] | None = None) -> AffineExpr:
    """The expression in canonical order where it is linear, also thanks to the dimensions' ranges; else as it is."""
    if type(expr) is AffineDimExpr or type(expr) is AffineConstantExpr:
        return expr
    form = linear_form(expr, ranges)
    return form.expression() if form is not None else expr


def over_used(exprs: Sequence[AffineExpr], dims: int) -> tuple[AffineMap, list[int]]:
    """The map of expressions over only those of so many dimensions that they use, and which these are."""
    found = set[int]()
    for expr in exprs:
        _note_dims(expr, found)
    used = sorted(found)
    if len(used) < dims:
        renamed = [AffineExpr.constant(0)] * dims
        for position, dim in enumerate(used):
            renamed[dim] = AffineExpr.dimension(position)
        exprs = [expr.replace_dims_and_symbols(renamed, []) for expr in exprs]
    return AffineMap(len(used), 0, tuple(exprs)), used


def _note_dims(expr: AffineExpr, found: set[int]) -> None:
    """As `used_dims` of an expression, in a third of the time: most are a variable or a constant."""
    if type(expr) is AffineDimExpr:
        found.add(expr.position)
    elif type(expr) is AffineBinaryOpExpr:
        _note_dims(expr.lhs, found)
        _note_dims(expr.rhs, found)


def spread(expr: AffineExpr, inner: Mapping[int, range], outer: Mapping[int, range]) -> int:
    """How far apart two values of an expression are at most while the `outer` dimensions stay.

    Raises ValueError for an expression that is neither linear nor made of quotients and remainders by numbers.
    """
    form = linear_form(expr)
    if form is not None:
        return sum(abs(c) * (len(inner[d]) - 1) * inner[d].step for d, c in form.coefficients.items() if d in inner)
    match expr:
        case AffineBinaryOpExpr(AffineBinaryOpKind.Add, lhs, rhs):
            return spread(lhs, inner, outer) + spread(rhs, inner, outer)
        case AffineBinaryOpExpr(AffineBinaryOpKind.Mul, lhs, AffineConstantExpr(value=factor)):
            return abs(factor) * spread(lhs, inner, outer)
        case AffineBinaryOpExpr(AffineBinaryOpKind.FloorDiv, lhs, AffineConstantExpr(value=divisor)):
            found = spread(lhs, inner, outer)
            return found // divisor if _begins_at_multiple(lhs, divisor, inner, outer) else -(-found // divisor)
        case AffineBinaryOpExpr(AffineBinaryOpKind.Mod, lhs, AffineConstantExpr(value=divisor)):
            found = spread(lhs, inner, outer)
            return found if found < divisor and _begins_at_multiple(lhs, divisor, inner, outer) else divisor - 1
        case _:
            raise ValueError(f"{expr} is no quotient")


def _begins_at_multiple(expr: AffineExpr, divisor: int, inner: Mapping[int, range], outer: Mapping[int, range]) -> bool:
    """Whether the least value of an expression is a multiple of a number, wherever the outer dimensions are."""
    match expr:
        case AffineBinaryOpExpr(AffineBinaryOpKind.FloorDiv, lhs, AffineConstantExpr(value=factor)):
            return _begins_at_multiple(lhs, divisor * factor, inner, outer)
        case _:
            form = linear_form(expr)
    if form is None:
        return False
    least = form.constant + sum(c * inner[d][0 if c > 0 else -1] for d, c in form.coefficients.items() if d in inner)
    moving = (c * step for d, c in form.coefficients.items() if d in outer for step in (outer[d].start, outer[d].step))
    return all(each % divisor == 0 for each in (least, *moving))


def bounds(expr: AffineExpr, ranges: Mapping[int, range]) -> tuple[int, int]:
    """Smallest and largest value of an expression that is linear or a quotient of such.

    Raises KeyError for a dimension without a range and ValueError for other expressions.
    """
    form = linear_form(expr)
    if form is None:
        return _quotient_bounds(expr, ranges)
    ends = [(c * ranges[d][0], c * ranges[d][-1]) for d, c in form.coefficients.items()]
    return form.constant + sum(map(min, ends)), form.constant + sum(map(max, ends))


def _quotient_bounds(expr: AffineExpr, ranges: Mapping[int, range]) -> tuple[int, int]:
    match expr:
        case AffineBinaryOpExpr(AffineBinaryOpKind.Add, lhs, rhs):
            (a, b), (c, d) = bounds(lhs, ranges), bounds(rhs, ranges)
            return a + c, b + d
        case AffineBinaryOpExpr(AffineBinaryOpKind.Mul, lhs, AffineConstantExpr(value=factor)):
            ends = [factor * end for end in bounds(lhs, ranges)]
            return min(ends), max(ends)
        case AffineBinaryOpExpr(AffineBinaryOpKind.FloorDiv, lhs, AffineConstantExpr(value=divisor)):
            low, high = bounds(lhs, ranges)
            return low // divisor, high // divisor
        case AffineBinaryOpExpr(AffineBinaryOpKind.Mod, _, AffineConstantExpr(value=divisor)):
            return 0, divisor - 1
        case _:
            raise ValueError(f"{expr} is not linear")
