"""Arithmetic with neutral elements, and operations that undo or repeat each other.

Not here, because IEEE arithmetic forbids them: x * 0 (NaN, infinities, -0), x - x (NaN, infinities), x + 0 (it makes +0
of -0), pow(x, 0.5) as a square root (-0 and -inf differ).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from xdsl.ir import OpResult, SSAValue

from msc.dialects import ms
from msc.dialects.element_types import is_float
from msc.dialects.ms.base import MsOp
from msc.dialects.ms.constants import splat_of
from msc.dialects.ms.elementwise import UnaryOp
from msc.dialects.open_sizes import has_open_sizes
from msc.graph.emitter import Emitter
from msc.graph.simplify.simplifications.registry import simplification

_SMALLEST_NORMAL = {"f16": 2.0**-14, "bf16": 2.0**-126, "f32": 2.0**-126, "f64": 2.0**-1022}


def defined_by(value: SSAValue, *classes: type[MsOp]) -> MsOp | None:
    """The operation that computes a value, if it is of one of the classes."""
    if isinstance(value, OpResult) and isinstance(value.op, classes):
        return value.op
    return None


def _is_splat(value: SSAValue, number: float, negative_zero: bool = False) -> bool:
    """Whether a value is a constant that is `number` everywhere; zeros of floats must have the given sign."""
    splat: Any = splat_of(value)
    if splat is None or splat != number:
        return False
    return number != 0 or np.asarray(splat).dtype.kind in "iub" or bool(np.signbit(float(splat))) == negative_zero


@simplification(ms.AddOp)
def _add_zero(op: ms.AddOp, emit: Emitter) -> SSAValue | None:
    """Adding -0.0 keeps every x, -0.0 included; for integers zero has no sign."""
    if _is_splat(op.rhs, 0, negative_zero=True):
        return op.lhs
    return op.rhs if _is_splat(op.lhs, 0, negative_zero=True) else None


@simplification(ms.SubOp)
def _subtract_zero(op: ms.SubOp, emit: Emitter) -> SSAValue | None:
    """Subtracting +0.0 keeps every x, -0.0 included."""
    return op.lhs if _is_splat(op.rhs, 0) else None


@simplification(ms.MulOp)
def _multiply_by_one(op: ms.MulOp, emit: Emitter) -> SSAValue | None:
    """Multiplying by 1 keeps every x."""
    if _is_splat(op.rhs, 1):
        return op.lhs
    return op.rhs if _is_splat(op.lhs, 1) else None


@simplification(ms.DivOp, ms.FloorDivOp)
def _divide_by_one(op: ms.DivOp | ms.FloorDivOp, emit: Emitter) -> SSAValue | None:
    """Dividing by 1 keeps every x; with the floor of it that is so only for integers."""
    whole = isinstance(op, ms.DivOp) or not is_float(op.dtype(0))
    return op.lhs if whole and _is_splat(op.rhs, 1) else None


@simplification(ms.DivOp)
def _divide_by_power_of_two(op: ms.DivOp, emit: Emitter) -> SSAValue | None:
    """The reciprocal of a power of two is exact, so both forms round the same real number.

    Where calls decide sizes, the number may be one of them, and no power of two in the next call.
    """
    splat: Any = splat_of(op.rhs)
    if splat is None or not is_float(op.dtype(1)) or has_open_sizes(op):
        return None
    divisor = float(splat)
    if divisor == 1 or not _has_exact_reciprocal(divisor, op.dtype(1)):
        return None
    return emit(ms.MulOp, op.lhs, _like(op.rhs, 1 / divisor, emit))


def _has_exact_reciprocal(number: float, dtype: str) -> bool:
    """Whether a number and its reciprocal are powers of two in the normal range."""
    if not math.isfinite(number) or number == 0 or abs(math.frexp(number)[0]) != 0.5:
        return False
    least = _SMALLEST_NORMAL[dtype]
    return min(abs(number), 1 / abs(number)) >= least


def _like(constant: SSAValue, number: float, emit: Emitter) -> SSAValue:
    """A scalar, if that broadcasts as the constant did: its axes are all of size 1 or come from elsewhere."""
    return emit.scalar(number, emit.dtype(constant))


@simplification(ms.PowOp)
def _small_power(op: ms.PowOp, emit: Emitter) -> SSAValue | None:
    """The first power is exact; correctly rounded, the second is the product and that of -1 the quotient, at -0 too."""
    if not is_float(op.dtype(0)):
        return None
    for power, make in ((1, None), (2, ms.SquareOp), (-1, ms.ReciprocalOp)):
        if _is_splat(op.rhs, power):
            return op.lhs if make is None else emit(make, op.lhs)
    return None


@simplification(ms.NegOp, ms.LogicalNotOp, ms.BitwiseNotOp)
def _undo(op: ms.NegOp | ms.LogicalNotOp | ms.BitwiseNotOp, emit: Emitter) -> SSAValue | None:
    """Each of these undoes itself, exactly; it flips a sign bit or all bits."""
    inner = defined_by(op.x, type(op))
    return inner.operands[0] if inner is not None else None


_INTEGRAL = (ms.FloorOp, ms.CeilOp, ms.RoundOp, ms.TruncOp)


@simplification(ms.ReluOp, ms.AbsOp, *_INTEGRAL)
def _repeat(op: UnaryOp, emit: Emitter) -> SSAValue | None:
    """The second of two equal ones changes nothing; rounding in any way keeps what is integral, and its sign."""
    same = _INTEGRAL if isinstance(op, _INTEGRAL) else (type(op),)
    return op.x if defined_by(op.x, *same) is not None else None


@simplification(ms.AbsOp, ms.SquareOp)
def _ignore_sign(op: ms.AbsOp | ms.SquareOp, emit: Emitter) -> SSAValue | None:
    """The sign that a negation flips or an absolute value clears makes no difference (floats only: -(-128) wraps)."""
    inner = defined_by(op.x, ms.NegOp, ms.AbsOp)
    if inner is None or not is_float(op.dtype(0)) or (isinstance(op, ms.AbsOp) and isinstance(inner, ms.AbsOp)):
        return None
    return emit(type(op), inner.operands[0])


@simplification(ms.IdentityOp)
def _identity(op: ms.IdentityOp, emit: Emitter) -> SSAValue | None:
    """It is its operand."""
    return op.x
