"""Bounds of affine expressions, to prove at translation that an access stays inside its buffer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
)

Interval: TypeAlias = "tuple[int, int] | None"
"""Smallest and largest value, or None if unknown."""


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
