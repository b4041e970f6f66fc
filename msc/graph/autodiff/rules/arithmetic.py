"""Gradients of arithmetic where its slope is a choice: roots at 0, equal operands, products with 0."""

from __future__ import annotations

import math

from xdsl.ir import SSAValue

from msc.dialects import ms
from msc.graph.autodiff.derived import derived_gradient
from msc.graph.autodiff.emitting import GradientEmitter
from msc.graph.autodiff.registry import Contributions, gradient


@gradient(ms.MulNoNanOp)
def _absorbing_product(op: ms.MulNoNanOp, emit: GradientEmitter, g: SSAValue) -> Contributions:
    """By lhs rhs, also where lhs is 0, since the product is linear in lhs; by rhs 0 where lhs is 0."""
    by_lhs = emit.sum_to(emit(ms.MulNoNanOp, g, op.rhs), op.shape(0)) if emit.wants(0) else None
    return [by_lhs, emit.sum_to(emit(ms.MulNoNanOp, op.lhs, g), op.shape(1)) if emit.wants(1) else None]


@gradient(ms.SqrtOp)
def _root(op: ms.SqrtOp, emit: GradientEmitter, g: SSAValue) -> Contributions:
    if not op.flag("flat"):
        return derived_gradient(op, emit, [g])
    y = op.results[0]
    infinite = emit.scalar(math.inf, emit.dtype(g))
    divisor = emit(ms.SelectOp, emit(ms.EqualOp, y, 0.0), infinite, y)
    return [emit(ms.MulOp, g, emit(ms.DivOp, emit.scalar(0.5, emit.dtype(g)), divisor))]


@gradient(ms.PowOp)
def _power(op: ms.PowOp, emit: GradientEmitter, g: SSAValue) -> Contributions:
    derived = derived_gradient(op, emit, [g])
    if not op.flag("flat") or not emit.wants(0):
        return derived
    zero, one = (emit.scalar(v, emit.dtype(g)) for v in (0.0, 1.0))
    is_zero = emit(ms.EqualOp, op.lhs, zero)
    base = emit(ms.SelectOp, is_zero, one, op.lhs)
    slope = emit(ms.MulOp, op.rhs, emit(ms.PowOp, base, emit(ms.SubOp, op.rhs, one)))
    return [emit.sum_to(emit(ms.SelectOp, is_zero, zero, emit(ms.MulOp, g, slope)), op.shape(0)), *derived[1:]]


@gradient(ms.MaximumOp, ms.MinimumOp)
def _extreme(op: ms.MaximumOp | ms.MinimumOp, emit: GradientEmitter, g: SSAValue) -> Contributions:
    """To the operand that is taken; of equal ones half to each, or all to the first."""
    if not op.flag("to_first"):
        return derived_gradient(op, emit, [g])
    beyond = emit(ms.LessOp if isinstance(op, ms.MaximumOp) else ms.GreaterOp, op.lhs, op.rhs)
    zero = emit.scalar(0.0, emit.dtype(g))
    parts = (zero, g), (g, zero)
    return [
        emit.sum_to(emit(ms.SelectOp, beyond, *part), op.shape(k)) if emit.wants(k) else None
        for k, part in enumerate(parts)
    ]
