"""Gradients of softmax and of activations with limits."""

from __future__ import annotations

from xdsl.ir import SSAValue

from msc.dialects.ms.activations import ClipOp, LogSoftmaxOp, Relu6Op, SoftmaxOp
from msc.dialects.ms.arithmetic import MulOp, SubOp
from msc.dialects.ms.comparison import GreaterEqualOp, GreaterOp, LessEqualOp, LessOp, LogicalAndOp
from msc.dialects.ms.elementwise import SelectOp
from msc.dialects.ms.reductions import ReduceSumOp
from msc.dialects.ms.unary import ExpOp, ReluOp
from msc.graph.autodiff.emitting import GradientEmitter
from msc.graph.autodiff.registry import Contributions, gradient


@gradient(SoftmaxOp)
def _softmax(op: SoftmaxOp, emit: GradientEmitter, g: SSAValue) -> Contributions:
    """Y (g - sum of g y): needs the result alone."""
    y = op.results[0]
    product = emit(MulOp, g, y)
    total = emit(ReduceSumOp, product, axis=[op.int_("axis")], keep_dims=True)
    return [emit(SubOp, product, emit(MulOp, y, total))]


@gradient(LogSoftmaxOp)
def _log_softmax(op: LogSoftmaxOp, emit: GradientEmitter, g: SSAValue) -> Contributions:
    """G - e^y sum of g."""
    total = emit(ReduceSumOp, g, axis=[op.int_("axis")], keep_dims=True)
    return [emit(SubOp, g, emit(MulOp, emit(ExpOp, op.results[0]), total))]


@gradient(ReluOp)
def _relu(op: ReluOp, emit: GradientEmitter, g: SSAValue) -> Contributions:
    """Passes where the result is positive, which the next layer's gradient reads, too; x need not be stored."""
    return [emit(SelectOp, emit(GreaterOp, op.results[0], 0.0), g, emit.scalar(0.0, emit.dtype(g)))]


@gradient(ClipOp)
def _clip(op: ClipOp, emit: GradientEmitter, g: SSAValue) -> Contributions:
    """Passes inside of the limits and on them."""
    inside: SSAValue | None = None
    for limit, comparison in (("min", GreaterEqualOp), ("max", LessEqualOp)):
        value = op.plain(limit)
        if isinstance(value, float):
            held = emit(comparison, op.operands[0], value)
            inside = held if inside is None else emit(LogicalAndOp, inside, held)
    return [g if inside is None else emit(SelectOp, inside, g, emit.scalar(0.0, emit.dtype(g)))]


@gradient(Relu6Op)
def _relu6(op: Relu6Op, emit: GradientEmitter, g: SSAValue) -> Contributions:
    """Passes between the limits, not on them."""
    inside = emit(LogicalAndOp, emit(GreaterOp, op.operands[0], 0.0), emit(LessOp, op.operands[0], 6.0))
    return [emit(SelectOp, inside, g, emit.scalar(0.0, emit.dtype(g)))]
