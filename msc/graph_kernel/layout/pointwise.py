"""What reads each place of an image once: pointwise convolutions, and poolings of windows side by side."""

from __future__ import annotations

from math import prod

from xdsl.ir import BlockArgument, OpResult, SSAValue

from msc.analysis.target import target_of
from msc.dialects.element_types import BYTES
from msc.dialects.gk import KernelOp
from msc.dialects.ms.convolution import ConvolutionOp
from msc.dialects.ms.movement import TransposeOp
from msc.dialects.ms.pooling import BasicPoolingOp


def runs_along_image(kernel: KernelOp) -> bool:
    """Whether the kernel reads each place of an image that lies channels first once, and its result lies so too."""
    windows = [op for op in kernel.body.block.ops if isinstance(op, ConvolutionOp | BasicPoolingOp)]
    as_they_lie = not any(_is_transposed(v) for v in kernel.terminator.values)
    return len(windows) == 1 and as_they_lie and _reads_once(windows[0])


def _reads_once(op: ConvolutionOp | BasicPoolingOp) -> bool:
    """Whether a pointwise convolution, or windows side by side, are of an argument whose rows are vectors."""
    lanes = target_of(op).machine.lanes(BYTES["f32"])
    if isinstance(op, BasicPoolingOp):
        apart = op.kernel() == op.ints("stride") and op.ints("stride")[-1] <= EVERY_OTHER
        return apart and isinstance(op.operands[0], BlockArgument) and op.result_shape()[-1] >= lanes
    once = {*op.kernel(), *op.ints("stride"), op.int_("group")} == {1}
    return once and isinstance(op.operands[0], BlockArgument) and prod(op.shape(0)[2:]) >= 2 * lanes


EVERY_OTHER = 2
"""The largest stride of elements that generated code loads by shuffles of whole vectors, on every machine."""


def _is_transposed(value: SSAValue) -> bool:
    return isinstance(value, OpResult) and isinstance(value.op, TransposeOp)
