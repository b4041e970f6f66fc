"""Convolutions as valid ones without bias, of an input that is padded before: every iteration domain is a box."""

from __future__ import annotations

from xdsl.ir import SSAValue

from msc.dialects import ms
from msc.dialects.ms.convolution import ConvolutionOp
from msc.graph.emitter import Emitter
from msc.graph.expand.expanders.registry import expander


def with_bias(y: SSAValue, bias: SSAValue | None, rank: int, emit: Emitter) -> SSAValue:
    """The outputs `[n, oc, spatial...]` plus the bias of each channel, if there is one."""
    return y if bias is None else emit(ms.AddOp, y, emit.along_channels(bias, rank))


@expander(ms.Conv1dOp, ms.Conv2dOp, ms.Conv3dOp)
def _convolution(op: ConvolutionOp, emit: Emitter) -> SSAValue:
    emit.shape(op.x)
    x = emit.pad_spatial(op.x, op.padding())
    sizes = {"stride": op.ints("stride"), "dilation": op.ints("dilation"), "group": op.int_("group")}
    return with_bias(emit(type(op), x, op.weight, **sizes, dtype=op.plain("dtype")), op.bias, op.SPATIAL + 2, emit)
