"""Bounds of loops of the entry function as affine expressions of the numbers of loops around them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import BlockArgument, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineExpr


@dataclass(frozen=True)
class UpperBound:
    """The smallest of some expressions; dimension k of each stands for `values[k]`."""

    values: tuple[SSAValue, ...]
    exprs: tuple[AffineExpr, ...]

    @property
    def is_one(self) -> bool:
        """Whether it is the constant 1."""
        return self.exprs == (AffineExpr.constant(1),)

    def over(self, values: Sequence[SSAValue]) -> tuple[AffineExpr, ...]:
        """The expressions over more values, or in another order."""
        dims = [AffineExpr.dimension(values.index(v)) for v in self.values]
        return tuple(expr.replace_dims_and_symbols(dims, []) for expr in self.exprs)


def whole(value: SSAValue) -> UpperBound:
    """A value as a bound, however it is computed."""
    return UpperBound((value,), (AffineExpr.dimension(0),))


def bound_of(value: SSAValue) -> UpperBound | None:
    """An index value as a bound; None where it is no sum, difference, multiple, quotient or minimum."""
    if isinstance(value, BlockArgument):
        return whole(value)
    match value.owner:
        case arith.ConstantOp(value=IntegerAttr() as constant):
            return UpperBound((), (AffineExpr.constant(constant.value.data),))
        case arith.MinSIOp(lhs=lhs, rhs=rhs):
            return _joined(bound_of(lhs), bound_of(rhs))
        case arith.AddiOp(lhs=lhs, rhs=rhs):
            return _combined(bound_of(lhs), bound_of(rhs), "+")
        case arith.SubiOp(lhs=lhs, rhs=rhs):
            return _combined(bound_of(lhs), bound_of(rhs), "-")
        case arith.MuliOp(lhs=lhs, rhs=rhs):
            return _combined(bound_of(lhs), bound_of(rhs), "*")
        case arith.FloorDivSIOp(lhs=lhs, rhs=rhs):
            return _combined(bound_of(lhs), bound_of(rhs), "/")
        case _:
            return None


def _joined(a: UpperBound | None, b: UpperBound | None) -> UpperBound | None:
    if a is None or b is None:
        return None
    values = tuple(dict.fromkeys((*a.values, *b.values)))
    return UpperBound(values, (*a.over(values), *b.over(values)))


def _combined(a: UpperBound | None, b: UpperBound | None, operation: str) -> UpperBound | None:
    both = _joined(a, b)
    if both is None or len(both.exprs) != 2:
        return None
    left, right = both.exprs
    if operation in ("+", "-"):
        return UpperBound(both.values, (left + right if operation == "+" else left - right,))
    if not isinstance(right, AffineConstantExpr):
        return None
    return UpperBound(both.values, (left * right if operation == "*" else left // right.value,))
