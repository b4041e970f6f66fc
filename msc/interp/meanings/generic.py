"""`ms.compute` and operations like it: compute definitions, evaluated statement by statement over their whole boxes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from xdsl.ir.affine import AffineBinaryOpExpr, AffineBinaryOpKind, AffineConstantExpr, AffineDimExpr, AffineExpr

from msc.dialects.arrays import Array, numpy_dtype
from msc.dialects.ms.base import BasicOp, MsOp
from msc.interp.meanings.elementwise import SCALARS, converted
from msc.interp.registry import meaning
from msc.poly.compute import Combine, Statement, identity
from msc.poly.scalar import Apply, Cast, Constant, Index, Read, Scalar

_COMBINERS: Mapping[Combine, np.ufunc] = {
    **{"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum},
    **{"and": np.bitwise_and, "or": np.bitwise_or},
}


@meaning("compute")
def _compute(op: MsOp, *arrays: Array) -> Array:
    assert isinstance(op, BasicOp)
    return evaluate_statements(op.compute(), arrays, op.result_shape(), op.result_dtype())


def evaluate_statements(
    statements: Sequence[Statement], operands: Sequence[Array], shape: Sequence[int], dtype: str
) -> Array:
    """The tensor that statements write. Narrow floats are computed and summed in f32, as operands hold them."""
    wide = np.dtype(np.float32) if dtype in ("f16", "bf16") else numpy_dtype(dtype)
    result = np.zeros(tuple(shape), wide)
    for statement in statements:
        if 0 not in statement.extents:
            _run(statement, operands, result)
        elif statement.combine is not None and not statement.accumulate and result.size:
            result[...] = identity(statement.combine, statement.body.dtype)
    return result


def _run(statement: Statement, operands: Sequence[Array], result: Array) -> None:
    grid = np.ix_(*map(np.arange, statement.extents))
    value = np.broadcast_to(_value(statement.body, grid, operands), statement.extents)
    if result.ndim == 0:  # a view with a place for the index
        result = result.reshape(1)
    exprs = statement.write.results or (AffineExpr.constant(0),)
    places = tuple(np.broadcast_to(_place(e, grid), statement.extents) for e in exprs)
    if statement.combine is None:
        result[places] = value
        return
    if not statement.accumulate:
        result[places] = identity(statement.combine, statement.body.dtype)
    _COMBINERS[statement.combine].at(result, places, value)


def _place(expr: AffineExpr, grid: Sequence[Array]) -> Any:
    match expr:
        case AffineConstantExpr():
            return np.array(expr.value)
        case AffineDimExpr():
            return grid[expr.position]
        case AffineBinaryOpExpr(kind, lhs, rhs):
            a, b = _place(lhs, grid), _place(rhs, grid)
            match kind:
                case AffineBinaryOpKind.Add:
                    return a + b
                case AffineBinaryOpKind.Mul:
                    return a * b
                case AffineBinaryOpKind.FloorDiv:
                    return a // b
                case AffineBinaryOpKind.Mod:
                    return a % b
                case _:
                    return -(-a // b)
        case _:
            raise TypeError(f"no place for {expr}")


def _value(scalar: Scalar, grid: Sequence[Array], operands: Sequence[Array]) -> Any:
    match scalar:
        case Constant():
            return np.array(scalar.value, _dtype(scalar.dtype))
        case Index():
            return np.asarray(_place(scalar.expr, grid)).astype(np.int64)
        case Read():
            indirect = {axis: _value(index, grid, operands) for axis, index in scalar.indirect}
            places = [indirect.get(axis, _place(e, grid)) for axis, e in enumerate(scalar.index.results)]
            return operands[scalar.operand][tuple(places)]
        case Cast():
            value = np.asarray(_value(scalar.arg, grid, operands))
            return value.view(numpy_dtype(scalar.dtype)) if scalar.bits else converted(value, _dtype(scalar.dtype))
        case Apply():
            return SCALARS[scalar.op](*(_value(a, grid, operands) for a in scalar.args))


def _dtype(name: str) -> np.dtype[Any]:
    """Of what is computed: narrow floats as f32."""
    return np.dtype(np.float32) if name in ("f16", "bf16") else numpy_dtype(name)
