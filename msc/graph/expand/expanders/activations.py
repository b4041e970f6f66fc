"""Composite activations and softmax in basic operations. Comparisons are false for NaN: each form passes NaN on."""

from __future__ import annotations

import math

from xdsl.ir import SSAValue

from msc.dialects import ms
from msc.dialects.ms.activations import AlongAxisOp
from msc.graph.emitter import Emitter
from msc.graph.expand.expanders.registry import expander

SELU_ALPHA = 1.6732632423543772
SELU_SCALE = 1.0507009873554805


@expander(ms.GeluOp)
def _gelu(op: ms.GeluOp, emit: Emitter) -> SSAValue:
    x = op.x
    if op.word("approximate") == "tanh":
        cube = emit(ms.MulOp, emit(ms.MulOp, x, x), x)
        inner = emit(ms.AddOp, x, emit(ms.MulOp, cube, 0.044715))
        gate = emit(ms.TanhOp, emit(ms.MulOp, inner, math.sqrt(2 / math.pi)))
    else:
        gate = emit(ms.ErfOp, emit(ms.MulOp, x, math.sqrt(0.5)))
    return emit(ms.MulOp, emit(ms.MulOp, x, 0.5), emit(ms.AddOp, gate, 1.0))


@expander(ms.SiluOp)
def _silu(op: ms.SiluOp, emit: Emitter) -> SSAValue:
    return emit(ms.MulOp, op.x, emit(ms.SigmoidOp, op.x))


@expander(ms.Relu6Op)
def _relu6(op: ms.Relu6Op, emit: Emitter) -> SSAValue:
    return emit(ms.MinimumOp, emit(ms.ReluOp, op.x), 6.0)


@expander(ms.MishOp)
def _mish(op: ms.MishOp, emit: Emitter) -> SSAValue:
    return emit(ms.MulOp, op.x, emit(ms.TanhOp, emit(ms.SoftplusOp, op.x)))


@expander(ms.SoftsignOp)
def _softsign(op: ms.SoftsignOp, emit: Emitter) -> SSAValue:
    return emit(ms.DivOp, op.x, emit(ms.AddOp, emit(ms.AbsOp, op.x), 1.0))


def _exponential(x: SSAValue, alpha: float, emit: Emitter) -> SSAValue:
    """The identity for x > 0, alpha * (e^x - 1) elsewhere; what overflows in e^x is not chosen."""
    return emit(ms.SelectOp, emit(ms.GreaterOp, x, 0.0), x, emit(ms.MulOp, emit(ms.Expm1Op, x), alpha))


@expander(ms.EluOp)
def _elu(op: ms.EluOp, emit: Emitter) -> SSAValue:
    return _exponential(op.x, op.real("alpha"), emit)


@expander(ms.SeluOp)
def _selu(op: ms.SeluOp, emit: Emitter) -> SSAValue:
    return emit(ms.MulOp, _exponential(op.x, SELU_ALPHA, emit), SELU_SCALE)


@expander(ms.CeluOp)
def _celu(op: ms.CeluOp, emit: Emitter) -> SSAValue:
    alpha = op.real("alpha")
    # The exponential of what is positive may overflow, and times 0 be NaN: it is cut to 0 before.
    negative = emit(ms.DivOp, emit(ms.MinimumOp, op.x, 0.0), alpha)
    powers = emit(ms.MulOp, emit(ms.Expm1Op, negative), alpha)
    return emit(ms.AddOp, emit(ms.ReluOp, op.x), emit(ms.MinimumOp, powers, 0.0))


@expander(ms.LeakyReluOp)
def _leaky_relu(op: ms.LeakyReluOp, emit: Emitter) -> SSAValue:
    scaled = emit(ms.MulOp, op.x, op.real("alpha"))
    return emit(ms.SelectOp, emit(ms.GreaterEqualOp, op.x, 0.0), op.x, scaled)


@expander(ms.PreluOp)
def _prelu(op: ms.PreluOp, emit: Emitter) -> SSAValue:
    rank, slope = len(op.shape(0)), op.slope
    if len(op.shape(1)) == 1 and rank > 1:
        slope = emit.along_channels(slope, rank)
    return emit(ms.SelectOp, emit(ms.GreaterEqualOp, op.x, 0.0), op.x, emit(ms.MulOp, slope, op.x))


@expander(ms.HardSigmoidOp)
def _hard_sigmoid(op: ms.HardSigmoidOp, emit: Emitter) -> SSAValue:
    line = emit(ms.AddOp, emit(ms.MulOp, op.x, op.real("alpha")), op.real("beta"))
    return emit(ms.MinimumOp, emit(ms.ReluOp, line), 1.0)


@expander(ms.HardSwishOp)
def _hard_swish(op: ms.HardSwishOp, emit: Emitter) -> SSAValue:
    gate = emit(ms.MinimumOp, emit(ms.ReluOp, emit(ms.AddOp, op.x, 3.0)), 6.0)
    return emit(ms.DivOp, emit(ms.MulOp, op.x, gate), 6.0)


@expander(ms.ClipOp)
def _clip(op: ms.ClipOp, emit: Emitter) -> SSAValue:
    low, high = op.plain("min"), op.plain("max")
    x = emit(ms.MaximumOp, op.x, low) if isinstance(low, float) else op.x
    return emit(ms.MinimumOp, x, high) if isinstance(high, float) else x


def _shifted(op: AlongAxisOp, emit: Emitter) -> SSAValue:
    """X less the largest element, so that no power overflows."""
    return emit(ms.SubOp, op.x, emit(ms.ReduceMaxOp, op.x, axis=[op.int_("axis")], keep_dims=True))


@expander(ms.SoftmaxOp)
def _softmax(op: ms.SoftmaxOp, emit: Emitter) -> SSAValue:
    powers = emit(ms.ExpOp, _shifted(op, emit))
    total = emit(ms.ReduceSumOp, powers, axis=[op.int_("axis")], keep_dims=True)
    return emit(ms.MulOp, powers, emit(ms.ReciprocalOp, total))


@expander(ms.LogSoftmaxOp)
def _log_softmax(op: ms.LogSoftmaxOp, emit: Emitter) -> SSAValue:
    shifted = _shifted(op, emit)
    total = emit(ms.ReduceSumOp, emit(ms.ExpOp, shifted), axis=[op.int_("axis")], keep_dims=True)
    return emit(ms.SubOp, shifted, emit(ms.LogOp, total))
