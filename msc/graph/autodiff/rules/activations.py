"""Gradients of softmax and of activations with limits."""

from __future__ import annotations

from xdsl.ir import SSAValue

from msc.dialects import ms
from msc.graph.autodiff.emitting import GradientEmitter
from msc.graph.autodiff.registry import Contributions, gradient


@gradient(ms.SoftmaxOp)
def _softmax(op: ms.SoftmaxOp, emit: GradientEmitter, g: SSAValue) -> Contributions:
    """Y (g - sum of g y): needs the result alone."""
    y = op.results[0]
    product = emit(ms.MulOp, g, y)
    total = emit(ms.ReduceSumOp, product, axis=[op.int_("axis")], keep_dims=True)
    return [emit(ms.SubOp, product, emit(ms.MulOp, y, total))]


@gradient(ms.LogSoftmaxOp)
def _log_softmax(op: ms.LogSoftmaxOp, emit: GradientEmitter, g: SSAValue) -> Contributions:
    """G - e^y sum of g."""
    total = emit(ms.ReduceSumOp, g, axis=[op.int_("axis")], keep_dims=True)
    return [emit(ms.SubOp, g, emit(ms.MulOp, emit(ms.ExpOp, op.results[0]), total))]


@gradient(ms.ReluOp)
def _relu(op: ms.ReluOp, emit: GradientEmitter, g: SSAValue) -> Contributions:
    """Passes where the result is positive, which the next layer's gradient reads, too; x need not be stored."""
    return [emit(ms.SelectOp, emit(ms.GreaterOp, op.results[0], 0.0), g, emit.scalar(0.0, emit.dtype(g)))]


@gradient(ms.ClipOp)
def _clip(op: ms.ClipOp, emit: GradientEmitter, g: SSAValue) -> Contributions:
    """Passes inside of the limits and on them."""
    inside: SSAValue | None = None
    for limit, comparison in (("min", ms.GreaterEqualOp), ("max", ms.LessEqualOp)):
        value = op.plain(limit)
        if isinstance(value, float):
            held = emit(comparison, op.operands[0], value)
            inside = held if inside is None else emit(ms.LogicalAndOp, inside, held)
    return [g if inside is None else emit(ms.SelectOp, inside, g, emit.scalar(0.0, emit.dtype(g)))]


@gradient(ms.Relu6Op)
def _relu6(op: ms.Relu6Op, emit: GradientEmitter, g: SSAValue) -> Contributions:
    """Passes between the limits, not on them."""
    inside = emit(ms.LogicalAndOp, emit(ms.GreaterOp, op.operands[0], 0.0), emit(ms.LessOp, op.operands[0], 6.0))
    return [emit(ms.SelectOp, inside, g, emit.scalar(0.0, emit.dtype(g)))]
