"""Softmax and its logarithm: the largest element is subtracted first, so that no power overflows."""

from __future__ import annotations

from xdsl.ir import SSAValue

from msc.dialects.ms.activations import AlongAxisOp, LogSoftmaxOp, SoftmaxOp
from msc.dialects.ms.arithmetic import MulOp, SubOp
from msc.dialects.ms.reductions import ReduceMaxOp, ReduceSumOp
from msc.dialects.ms.unary import ExpOp, LogOp, ReciprocalOp
from msc.graph.emitter import Emitter
from msc.graph.expand.expanders.registry import expander


def _shifted(op: AlongAxisOp, emit: Emitter) -> SSAValue:
    return emit(SubOp, op.x, emit(ReduceMaxOp, op.x, axis=[op.int_("axis")], keep_dims=True))


@expander(SoftmaxOp)
def _softmax(op: SoftmaxOp, emit: Emitter) -> SSAValue:
    powers = emit(ExpOp, _shifted(op, emit))
    total = emit(ReduceSumOp, powers, axis=[op.int_("axis")], keep_dims=True)
    return emit(MulOp, powers, emit(ReciprocalOp, total))


@expander(LogSoftmaxOp)
def _log_softmax(op: LogSoftmaxOp, emit: Emitter) -> SSAValue:
    shifted = _shifted(op, emit)
    total = emit(ReduceSumOp, emit(ExpOp, shifted), axis=[op.int_("axis")], keep_dims=True)
    return emit(SubOp, shifted, emit(LogOp, total))
