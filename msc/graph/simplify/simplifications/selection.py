"""Selections whose outcome is known, and conversions that change nothing."""

from __future__ import annotations

from xdsl.ir import SSAValue

from msc.dialects import ms
from msc.dialects.ms.constants import splat_of
from msc.graph.emitter import Emitter
from msc.graph.simplify.simplifications.arithmetic import defined_by
from msc.graph.simplify.simplifications.registry import simplification

_EXACTLY_IN = {
    "f16": {"f32", "f64"},
    "bf16": {"f32", "f64"},
    "f32": {"f64"},
    "i8": {"i16", "i32", "i64", "f16", "bf16", "f32", "f64"},
    "i16": {"i32", "i64", "f32", "f64"},
    "i32": {"i64", "f64"},
    "ui8": {"i16", "i32", "i64", "ui16", "ui32", "ui64", "f16", "bf16", "f32", "f64"},
    "ui16": {"i32", "i64", "ui32", "ui64", "f32", "f64"},
    "ui32": {"i64", "ui64", "f64"},
}
"""Element types that hold every value of another one."""


@simplification(ms.MaximumOp, ms.MinimumOp)
def _of_itself(op: ms.MaximumOp | ms.MinimumOp, emit: Emitter) -> SSAValue | None:
    """The larger of x and x is x, also for NaN and zeros."""
    return op.lhs if op.lhs is op.rhs else None


@simplification(ms.SelectOp)
def _known_choice(op: ms.SelectOp, emit: Emitter) -> SSAValue | None:
    """A constant condition chooses one side; two equal sides need no condition."""
    if op.a is op.b:
        return op.a
    condition = splat_of(op.condition)
    return None if condition is None else op.a if condition else op.b


@simplification(ms.CastOp)
def _no_conversion(op: ms.CastOp, emit: Emitter) -> SSAValue | None:
    """To the same element type, or there and back through one that holds every value."""
    if op.dtype(0) == op.result_dtype():
        return op.x
    inner = defined_by(op.x, ms.CastOp)
    if inner is None or inner.dtype(0) != op.result_dtype():
        return None
    return inner.operands[0] if op.dtype(0) in _EXACTLY_IN.get(op.result_dtype(), ()) else None
