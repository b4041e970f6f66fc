"""Softmax and its logarithm: the largest element is subtracted first, so that no power overflows."""

from __future__ import annotations

from xdsl.ir import SSAValue

from msc.dialects import ms
from msc.dialects.ms.activations import AlongAxisOp
from msc.graph.emitter import Emitter
from msc.graph.expand.expanders.registry import expander


def _shifted(op: AlongAxisOp, emit: Emitter) -> SSAValue:
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
