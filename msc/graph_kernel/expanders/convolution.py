"""Convolutions as valid ones without bias, of an input that is padded before: every iteration domain is a box."""

from __future__ import annotations

from xdsl.ir import SSAValue

from msc.dialects.ms.arithmetic import AddOp
from msc.dialects.ms.convolution import Conv1dOp, Conv2dOp, Conv3dOp, ConvolutionOp
from msc.dialects.ms.movement import ReverseOp, TransposeOp
from msc.dialects.ms.padding import DilateOp
from msc.dialects.ms.transposed_convolution import (
    Conv1dTransposeOp,
    Conv2dTransposeOp,
    Conv3dTransposeOp,
    TransposedConvolutionOp,
)
from msc.graph_kernel.expanders.emitter import Emitter
from msc.graph_kernel.expanders.registry import expander


def _with_bias(y: SSAValue, bias: SSAValue | None, rank: int, emit: Emitter) -> SSAValue:
    return y if bias is None else emit(AddOp, y, emit.along_channels(bias, rank))


@expander(Conv1dOp, Conv2dOp, Conv3dOp)
def _convolution(op: ConvolutionOp, emit: Emitter) -> SSAValue:
    emit.shape(op.x)
    x = emit.pad_spatial(op.x, op.padding())
    properties = {"stride": op.ints("stride"), "dilation": op.ints("dilation"), "group": op.int_("group")}
    return _with_bias(emit(type(op), x, op.weight, **properties), op.bias, op.SPATIAL + 2, emit)


@expander(Conv1dTransposeOp, Conv2dTransposeOp, Conv3dTransposeOp)
def _transposed_convolution(op: TransposedConvolutionOp, emit: Emitter) -> SSAValue:
    """The convolution, with the weight turned round, of x with zeros between and around its elements."""
    forward = (Conv1dOp, Conv2dOp, Conv3dOp)[op.SPATIAL - 1]
    emit.shape(op.x)
    x = emit.pad_spatial(_dilated(op, emit), _surround(op))
    y = emit(forward, x, _turned_weight(op, emit), dilation=op.ints("dilation"), group=op.int_("group"))
    return _with_bias(y, op.bias, op.SPATIAL + 2, emit)


def _dilated(op: TransposedConvolutionOp, emit: Emitter) -> SSAValue:
    interior = [stride - 1 for stride in op.ints("stride")]
    return emit(DilateOp, op.x, interior=[0, 0, *interior]) if any(interior) else op.x


def _surround(op: TransposedConvolutionOp) -> list[tuple[int, int]]:
    """What is added around the dilated input; negative where the padding cuts off more than the windows reach."""
    axes = zip(op.windows(), op.padding(), op.added_at_end(), strict=True)
    return [(w.span - 1 - begin, w.span - 1 - end + more) for w, (begin, end), more in axes]


def _turned_weight(op: TransposedConvolutionOp, emit: Emitter) -> SSAValue:
    """`[ic, oc / g, kernel...]` to `[oc, ic / g, kernel...]` within each of the g groups, reversed along the kernel."""
    inputs, outputs, *kernel = emit.shape(op.weight)
    group, rank = op.int_("group"), len(kernel)
    grouped = emit.reshape(op.weight, (group, inputs // group, outputs, *kernel))
    swapped = emit(TransposeOp, grouped, perm=[0, 2, 1, *range(3, 3 + rank)])
    joined = emit.reshape(swapped, (group * outputs, inputs // group, *kernel))
    return emit(ReverseOp, joined, axis=list(range(2, 2 + rank)))
