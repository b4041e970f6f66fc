"""Gradients of functions of logarithms, in forms that stay right where a logarithm is infinite."""

from __future__ import annotations

from xdsl.ir import SSAValue

from msc.dialects import ms
from msc.graph.autodiff.emitting import GradientEmitter
from msc.graph.autodiff.registry import Contributions, gradient

_LEAST_VARIANCE = 1e-12
"""What x (1 - x) counts as at least in the gradient of the binary cross entropy, as in PyTorch."""


@gradient(ms.XlogyOp)
def _xlogy(op: ms.XlogyOp, emit: GradientEmitter, g: SSAValue) -> Contributions:
    """log(rhs) and lhs / rhs, but 0 at (0, 0), where these are infinite or nothing, and the function is 0."""
    zero = emit.scalar(0.0, emit.dtype(g))
    corner = emit(ms.LogicalAndOp, emit(ms.EqualOp, op.lhs, zero), emit(ms.LessEqualOp, op.rhs, zero))
    by_lhs = emit(ms.SelectOp, corner, zero, emit(ms.MulNoNanOp, g, emit(ms.LogOp, op.rhs)))
    by_rhs = emit(ms.SelectOp, corner, zero, emit(ms.MulNoNanOp, op.lhs, emit(ms.DivOp, g, op.rhs)))
    return [emit.sum_to(v, op.shape(k)) if emit.wants(k) else None for k, v in enumerate((by_lhs, by_rhs))]


@gradient(ms.LogAddExpOp)
def _log_add_exp(op: ms.LogAddExpOp, emit: GradientEmitter, g: SSAValue) -> Contributions:
    """sigmoid(a - b) and sigmoid(b - a): smooth where the two are equal. Equal infinities have half each."""
    same = emit(ms.LogicalAndOp, emit(ms.EqualOp, op.lhs, op.rhs), emit(ms.IsInfOp, op.lhs))
    distance = emit(ms.SelectOp, same, emit.scalar(0.0, emit.dtype(g)), emit(ms.SubOp, op.lhs, op.rhs))
    found: list[SSAValue | None] = [None, None]
    for k, exponent in enumerate((distance, emit(ms.NegOp, distance))):
        if emit.wants(k):
            found[k] = emit.sum_to(emit(ms.MulOp, g, emit(ms.SigmoidOp, exponent)), op.shape(k))
    return found


@gradient(ms.LogitOp)
def _logit(op: ms.LogitOp, emit: GradientEmitter, g: SSAValue) -> Contributions:
    """1 / (x (1 - x)): infinite on both ends."""
    variance = emit(ms.MulOp, op.x, emit(ms.SubOp, 1.0, op.x))
    return [emit(ms.MulNoNanOp, g, emit(ms.ReciprocalOp, variance))]


@gradient(ms.BinaryCrossEntropyOp)
def _binary_cross_entropy(op: ms.BinaryCrossEntropyOp, emit: GradientEmitter, g: SSAValue) -> Contributions:
    """(x - y) / (x (1 - x)) by chances: finite on their ends, so that the gradient of a saturated sigmoid is 0."""
    chance, label = op.operands
    rest = emit(ms.SubOp, 1.0, chance)
    found: list[SSAValue | None] = [None, None]
    if emit.wants(0):
        variance = emit(ms.ClipOp, emit(ms.MulOp, chance, rest), min=_LEAST_VARIANCE)
        slope = emit(ms.DivOp, emit(ms.SubOp, chance, label), variance)
        found[0] = emit.sum_to(emit(ms.MulOp, g, slope), op.shape(0))
    if emit.wants(1):
        logs = [emit(ms.ClipOp, emit(ms.LogOp, v), min=-100.0) for v in (rest, chance)]
        found[1] = emit.sum_to(emit(ms.MulOp, g, emit(ms.SubOp, *logs)), op.shape(1))
    return found
