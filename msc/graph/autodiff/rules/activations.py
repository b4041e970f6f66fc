"""Gradients of softmax, and of activations with limits or corners: on them the derivative is PyTorch's."""

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
    """Passes inside of the limits, and on them unless they are open."""
    inside: SSAValue | None = None
    closed = ms.GreaterEqualOp, ms.LessEqualOp
    for limit, comparison in zip(("min", "max"), (ms.GreaterOp, ms.LessOp) if op.flag("open") else closed, strict=True):
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


@gradient(ms.HardSigmoidOp)
def _hard_sigmoid(op: ms.HardSigmoidOp, emit: GradientEmitter, g: SSAValue) -> Contributions:
    """Passes between the limits, not on them: of x, since a fused multiplication moves those of the line."""
    alpha, beta = op.real("alpha"), op.real("beta")
    zero = emit.scalar(0.0, emit.dtype(g))
    if not alpha:
        return [emit(ms.MulOp, g, 0.0)]
    low, high = sorted((-beta / alpha, (1 - beta) / alpha))
    inside = emit(ms.LogicalAndOp, emit(ms.GreaterOp, op.x, low), emit(ms.LessOp, op.x, high))
    return [emit(ms.SelectOp, inside, emit(ms.MulOp, g, alpha), zero)]


@gradient(ms.HardSwishOp)
def _hard_swish(op: ms.HardSwishOp, emit: GradientEmitter, g: SSAValue) -> Contributions:
    """X / 3 + 1 / 2 between the limits; 0 and 1 on them and beyond."""
    zero, one = (emit.scalar(v, emit.dtype(g)) for v in (0.0, 1.0))
    slope = emit(ms.AddOp, emit(ms.DivOp, op.x, 3.0), 0.5)
    slope = emit(ms.SelectOp, emit(ms.GreaterEqualOp, op.x, 3.0), one, slope)
    return [emit(ms.MulOp, g, emit(ms.SelectOp, emit(ms.LessEqualOp, op.x, -3.0), zero, slope))]


@gradient(ms.CeluOp)
def _celu(op: ms.CeluOp, emit: GradientEmitter, g: SSAValue) -> Contributions:
    """1 where x is positive, e^(x / alpha) elsewhere: 1 at 0 from both sides."""
    positive = emit(ms.GreaterOp, op.x, 0.0)
    negative = emit(ms.SelectOp, positive, emit.scalar(0.0, emit.dtype(g)), op.x)
    power = emit(ms.ExpOp, emit(ms.DivOp, negative, op.real("alpha")))
    return [emit(ms.SelectOp, positive, g, emit(ms.MulOp, g, power))]


@gradient(ms.LeakyReluOp)
def _leaky_relu(op: ms.LeakyReluOp, emit: GradientEmitter, g: SSAValue) -> Contributions:
    """The slope of the negative side at 0."""
    return [emit(ms.SelectOp, emit(ms.GreaterOp, op.x, 0.0), g, emit(ms.MulOp, g, op.real("alpha")))]


@gradient(ms.PreluOp)
def _prelu(op: ms.PreluOp, emit: GradientEmitter, g: SSAValue) -> Contributions:
    """The slope of the negative side at 0."""
    rank, slope = len(op.shape(0)), op.slope
    if len(op.shape(1)) == 1 and rank > 1:
        slope = emit.along_channels(slope, rank)
    positive = emit(ms.GreaterOp, op.x, 0.0)
    by_x = emit(ms.SelectOp, positive, g, emit(ms.MulOp, slope, g)) if emit.wants(0) else None
    if not emit.wants(1):
        return [by_x, None]
    part = emit(ms.SelectOp, positive, emit.scalar(0.0, emit.dtype(g)), emit(ms.MulOp, op.x, g))
    return [by_x, emit.reshape(emit.sum_to(part, emit.shape(slope)), op.shape(1))]
