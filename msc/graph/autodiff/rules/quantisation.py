"""Straight through: what a quantised value gets is in the units of the real that it stands for.

So `dequantize(quantize(x))` passes a gradient to x where nothing was cut, and to the scale what LSQ (1902.08153) says:
`round(x / scale) - x / scale` inside of the range, the end of the range outside, each times the gradient.
"""

from __future__ import annotations

from xdsl.ir import SSAValue

from msc.dialects import ms
from msc.graph.autodiff.emitting import GradientEmitter
from msc.graph.autodiff.registry import Contributions, gradient
from msc.graph.autodiff.reverse import refusal
from msc.poly.compute import integer_range


@gradient(ms.DequantizeOp)
def _dequantize(op: ms.DequantizeOp, emit: GradientEmitter, g: SSAValue) -> Contributions:
    """The scale was multiplied by the integer without its zero point."""
    found: list[SSAValue | None] = [g, None, None]
    if emit.wants(1):
        whole = emit.cast(op.x, "i32")
        if op.zero is not None:
            whole = emit(ms.SubOp, whole, emit.cast(op.zero, "i32"))
        found[1] = emit.sum_to(emit(ms.MulOp, g, emit.cast(whole, emit.dtype(g))), op.shape(1))
    return found[: len(op.operands)]


@gradient(ms.PackedMatmulOp, ms.PackedDotOp)
def _packed_matmul(op: ms.PackedMatmulOp | ms.PackedDotOp, emit: GradientEmitter, g: SSAValue) -> Contributions:
    raise refusal(op, f"{op.name} has no gradient", "train with weights of floats, and pack these afterwards")


@gradient(ms.QuantizeOp)
def _quantize(op: ms.QuantizeOp, emit: GradientEmitter, g: SSAValue) -> Contributions:
    """Passes where the rounded and moved quotient is in the range of the type."""
    dtype = emit.dtype(g)
    quotient = emit(ms.DivOp, emit.cast(op.x, dtype), emit.cast(op.scale, dtype))
    moved = emit(ms.RoundOp, quotient)
    if op.zero is not None:
        moved = emit(ms.AddOp, moved, emit.cast(op.zero, dtype))
    low, high = integer_range(op.result_dtype())
    inside = emit(
        ms.LogicalAndOp,
        emit(ms.GreaterEqualOp, moved, float(low)),
        emit(ms.LessEqualOp, moved, float(high)),
    )
    passed = emit(ms.SelectOp, inside, g, emit.scalar(0.0, dtype))
    found: list[SSAValue | None] = [emit.cast(passed, op.dtype(0)), None, None]
    if emit.wants(1):
        by_scale = emit(ms.NegOp, emit(ms.MulOp, passed, quotient))
        found[1] = emit.cast(emit.sum_to(by_scale, op.shape(1)), op.dtype(1))
    return found[: len(op.operands)]
