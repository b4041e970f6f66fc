"""Bounds of affine expressions, to prove that an access stays inside its buffer and no part of an index overflows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from xdsl.ir.affine import AffineBinaryOpExpr, AffineBinaryOpKind, AffineConstantExpr, AffineDimExpr, AffineExpr

Interval: TypeAlias = "tuple[int, int] | None"
"""Smallest and largest value, or None if unknown."""

_UNKNOWN = 1 << 64


def interval(expr: AffineExpr, dims: Sequence[Interval]) -> Interval:
    """The values that an expression of the dimensions takes at most."""
    match expr:
        case AffineConstantExpr():
            return expr.value, expr.value
        case AffineDimExpr():
            return dims[expr.position]
        case AffineBinaryOpExpr():
            left, right = interval(expr.lhs, dims), interval(expr.rhs, dims)
            return None if left is None or right is None else _combined(expr.kind, left, right)
        case _:
            return None


def _combined(kind: AffineBinaryOpKind, a: tuple[int, int], b: tuple[int, int]) -> Interval:
    match kind:
        case AffineBinaryOpKind.Add:
            return a[0] + b[0], a[1] + b[1]
        case AffineBinaryOpKind.Mul:
            corners = [x * y for x in a for y in b]
            return min(corners), max(corners)
        case _:
            return _divided(kind, a, b[0]) if b[0] == b[1] and b[0] > 0 else None


def _divided(kind: AffineBinaryOpKind, a: tuple[int, int], n: int) -> Interval:
    match kind:
        case AffineBinaryOpKind.FloorDiv:
            return a[0] // n, a[1] // n
        case AffineBinaryOpKind.CeilDiv:
            return -(-a[0] // n), -(-a[1] // n)
        case _:
            return (a[0] % n, a[1] % n) if a[0] // n == a[1] // n else (0, n - 1)


def magnitude(expr: AffineExpr, dims: Sequence[Interval]) -> int:
    """What no part of an expression exceeds in absolute value, in whichever order its terms are added.

    Coefficients count too, as if every dimension were 1 at least; more than 64 bits where a dimension is not known.
    """
    match expr:
        case AffineConstantExpr():
            return abs(expr.value)
        case AffineDimExpr():
            known = dims[expr.position]
            return _UNKNOWN if known is None else max(1, abs(known[0]), abs(known[1]))
        case AffineBinaryOpExpr(AffineBinaryOpKind.Mul, lhs, rhs):
            return max(1, magnitude(lhs, dims)) * max(1, magnitude(rhs, dims))
        case AffineBinaryOpExpr(_, lhs, rhs):
            return magnitude(lhs, dims) + magnitude(rhs, dims)
        case _:
            return _UNKNOWN
