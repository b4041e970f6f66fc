"""Pass `expand-quantised`."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from msc.analysis.properties import KERNELS, UNSCHEDULED
from msc.dialects.ms.arithmetic import AddOp, DivOp, MaximumOp, MinimumOp, MulOp, SubOp
from msc.dialects.ms.constants import splat_of
from msc.dialects.ms.quantisation import DequantizeOp, QuantisationOp, QuantizeOp, RequantizeOp, real_type
from msc.dialects.ms.unary import RoundOp
from msc.graph.emitter import Emitter
from msc.graph.graph_loops import put_in_place
from msc.ir.contracts import Contract
from msc.poly.compute import integer_range


@dataclass(frozen=True)
class ExpandQuantised(ModulePass):
    """Put the steps of quantising, dequantising and requantising in their place, inside of kernels.

    Takes: kernels. Gives: conversions, products, roundings and limits, an operation each. The vector unit rounds,
    limits and converts by instructions of their own, and the Fixpipe computes those of one scale: both are selected
    from statements of one step. What becomes a kernel is decided before, by what the operations mean.
    Keeps: the meaning, bit by bit.
    """

    name = "expand-quantised"
    contract = Contract(requires=(KERNELS, UNSCHEDULED))

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for each in [o for o in op.walk() if isinstance(o, QuantisationOp)]:
            emit = Emitter(each)
            put_in_place(emit, _steps(each, emit), each.name.removeprefix("ms."))


def _steps(op: QuantisationOp, emit: Emitter) -> SSAValue:
    real = real_type(op.dtype(1), *([op.dtype(0)] if isinstance(op, QuantizeOp) else ()))
    scale = _in(op.scale, real, emit)
    if isinstance(op, DequantizeOp):
        moved = emit.cast(op.x, "i32")
        if op.zero is not None:
            moved = emit(SubOp, moved, _in(op.zero, "i32", emit))
        return emit.cast(emit(MulOp, emit.cast(moved, real), scale), op.result_dtype())
    quotient = MulOp if isinstance(op, RequantizeOp) else DivOp
    value = emit.cast(emit(RoundOp, emit(quotient, emit.cast(op.x, real), scale)), "f32")
    if op.zero is not None and splat_of(op.zero) != 0:
        value = emit(AddOp, value, _in(op.zero, "f32", emit))
    low, high = integer_range(op.result_dtype())
    return emit.cast(emit(MinimumOp, emit(MaximumOp, value, float(low)), float(high)), op.result_dtype())


def _in(value: SSAValue, dtype: str, emit: Emitter) -> SSAValue:
    """A scale or a zero point in a type: a literal if it is one number."""
    known = splat_of(value)
    return emit.cast(value, dtype) if known is None else emit.scalar(float(str(known)), dtype)
