"""Affine expressions as `arith` operations on index values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineBinaryOpExpr, AffineBinaryOpKind, AffineConstantExpr, AffineDimExpr, AffineExpr

Emit = Callable[[Operation], SSAValue]
"""Inserts an operation and gives its result."""

_OPERATIONS: Mapping[AffineBinaryOpKind, Callable[[SSAValue, SSAValue], Operation]] = {
    AffineBinaryOpKind.Add: arith.AddiOp,
    AffineBinaryOpKind.Mul: arith.MuliOp,
    AffineBinaryOpKind.FloorDiv: arith.FloorDivSIOp,
    AffineBinaryOpKind.CeilDiv: arith.CeilDivSIOp,
}


def index_constant(emit: Emit, value: int) -> SSAValue:
    """A constant of type index."""
    return emit(arith.ConstantOp.from_int_and_width(value, IndexType()))


def expand_affine(emit: Emit, expr: AffineExpr, values: Sequence[SSAValue]) -> SSAValue:
    """The value of `expr`, whose dimensions stand for `values`."""
    match expr:
        case AffineConstantExpr():
            return index_constant(emit, expr.value)
        case AffineDimExpr():
            return values[expr.position]
        case AffineBinaryOpExpr():
            return _expand_binary(emit, expr, values)
        case _:
            raise ValueError(f"affine expression {expr} has symbols")


def _expand_binary(emit: Emit, expr: AffineBinaryOpExpr, values: Sequence[SSAValue]) -> SSAValue:
    lhs = expand_affine(emit, expr.lhs, values)
    rhs = expand_affine(emit, expr.rhs, values)
    if expr.kind is not AffineBinaryOpKind.Mod:
        return emit(_OPERATIONS[expr.kind](lhs, rhs))
    quotient = emit(arith.FloorDivSIOp(lhs, rhs))
    return emit(arith.SubiOp(lhs, emit(arith.MuliOp(quotient, rhs))))
