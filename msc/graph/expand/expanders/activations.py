"""Composite activations in basic operations. Comparisons are false for NaN, so each form passes NaN on."""

from __future__ import annotations

import math

from xdsl.ir import SSAValue

from msc.dialects.ms.activations import (
    CeluOp,
    ClipOp,
    EluOp,
    GeluOp,
    HardSigmoidOp,
    HardSwishOp,
    LeakyReluOp,
    MishOp,
    PreluOp,
    Relu6Op,
    SeluOp,
    SiluOp,
    SoftsignOp,
)
from msc.dialects.ms.arithmetic import AddOp, DivOp, MaximumOp, MinimumOp, MulOp
from msc.dialects.ms.comparison import GreaterEqualOp, GreaterOp
from msc.dialects.ms.elementwise import SelectOp
from msc.dialects.ms.unary import AbsOp, ErfOp, Expm1Op, ReluOp, SigmoidOp, SoftplusOp, TanhOp
from msc.graph.emitter import Emitter
from msc.graph.expand.expanders.registry import expander

SELU_ALPHA = 1.6732632423543772
SELU_SCALE = 1.0507009873554805


@expander(GeluOp)
def _gelu(op: GeluOp, emit: Emitter) -> SSAValue:
    x = op.x
    if op.word("approximate") == "tanh":
        cube = emit(MulOp, emit(MulOp, x, x), x)
        inner = emit(AddOp, x, emit(MulOp, cube, 0.044715))
        gate = emit(TanhOp, emit(MulOp, inner, math.sqrt(2 / math.pi)))
    else:
        gate = emit(ErfOp, emit(MulOp, x, math.sqrt(0.5)))
    return emit(MulOp, emit(MulOp, x, 0.5), emit(AddOp, gate, 1.0))


@expander(SiluOp)
def _silu(op: SiluOp, emit: Emitter) -> SSAValue:
    return emit(MulOp, op.x, emit(SigmoidOp, op.x))


@expander(Relu6Op)
def _relu6(op: Relu6Op, emit: Emitter) -> SSAValue:
    return emit(MinimumOp, emit(ReluOp, op.x), 6.0)


@expander(MishOp)
def _mish(op: MishOp, emit: Emitter) -> SSAValue:
    return emit(MulOp, op.x, emit(TanhOp, emit(SoftplusOp, op.x)))


@expander(SoftsignOp)
def _softsign(op: SoftsignOp, emit: Emitter) -> SSAValue:
    return emit(DivOp, op.x, emit(AddOp, emit(AbsOp, op.x), 1.0))


def _exponential(x: SSAValue, alpha: float, emit: Emitter) -> SSAValue:
    """The identity for x > 0, alpha * (e^x - 1) elsewhere; what overflows in e^x is not chosen."""
    return emit(SelectOp, emit(GreaterOp, x, 0.0), x, emit(MulOp, emit(Expm1Op, x), alpha))


@expander(EluOp)
def _elu(op: EluOp, emit: Emitter) -> SSAValue:
    return _exponential(op.x, op.real("alpha"), emit)


@expander(SeluOp)
def _selu(op: SeluOp, emit: Emitter) -> SSAValue:
    return emit(MulOp, _exponential(op.x, SELU_ALPHA, emit), SELU_SCALE)


@expander(CeluOp)
def _celu(op: CeluOp, emit: Emitter) -> SSAValue:
    alpha = op.real("alpha")
    # The exponential of what is positive may overflow, and times 0 be NaN: it is cut to 0 before.
    negative = emit(DivOp, emit(MinimumOp, op.x, 0.0), alpha)
    powers = emit(MulOp, emit(Expm1Op, negative), alpha)
    return emit(AddOp, emit(ReluOp, op.x), emit(MinimumOp, powers, 0.0))


@expander(LeakyReluOp)
def _leaky_relu(op: LeakyReluOp, emit: Emitter) -> SSAValue:
    scaled = emit(MulOp, op.x, op.real("alpha"))
    return emit(SelectOp, emit(GreaterEqualOp, op.x, 0.0), op.x, scaled)


@expander(PreluOp)
def _prelu(op: PreluOp, emit: Emitter) -> SSAValue:
    rank, slope = len(op.shape(0)), op.slope
    if len(op.shape(1)) == 1 and rank > 1:
        slope = emit.along_channels(slope, rank)
    return emit(SelectOp, emit(GreaterEqualOp, op.x, 0.0), op.x, emit(MulOp, slope, op.x))


@expander(HardSigmoidOp)
def _hard_sigmoid(op: HardSigmoidOp, emit: Emitter) -> SSAValue:
    line = emit(AddOp, emit(MulOp, op.x, op.real("alpha")), op.real("beta"))
    return emit(MinimumOp, emit(ReluOp, line), 1.0)


@expander(HardSwishOp)
def _hard_swish(op: HardSwishOp, emit: Emitter) -> SSAValue:
    gate = emit(MinimumOp, emit(ReluOp, emit(AddOp, op.x, 3.0)), 6.0)
    return emit(DivOp, emit(MulOp, op.x, gate), 6.0)


@expander(ClipOp)
def _clip(op: ClipOp, emit: Emitter) -> SSAValue:
    low, high = op.plain("min"), op.plain("max")
    x = emit(MaximumOp, op.x, low) if isinstance(low, float) else op.x
    return emit(MinimumOp, x, high) if isinstance(high, float) else x
