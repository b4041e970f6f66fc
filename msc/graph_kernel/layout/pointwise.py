"""Pointwise convolutions: products of a matrix with the image, whose rows are as long as the whole image."""

from __future__ import annotations

from math import prod

from xdsl.ir import BlockArgument, OpResult, SSAValue

from msc.dialects.gk import KernelOp
from msc.dialects.ms.convolution import ConvolutionOp
from msc.dialects.ms.movement import TransposeOp

LONG_IMAGE = 32
"""Places in an image from which they fill vectors well enough to be what vectors run along."""


def runs_along_image(kernel: KernelOp) -> bool:
    """Whether the kernel is a pointwise convolution of an image that lies channels first, as its result does."""
    convolutions = [op for op in kernel.body.block.ops if isinstance(op, ConvolutionOp)]
    as_they_lie = not any(_is_transposed(v) for v in kernel.terminator.values)
    return len(convolutions) == 1 and as_they_lie and is_pointwise(convolutions[0])


def is_pointwise(op: ConvolutionOp) -> bool:
    """Whether a convolution of an argument visits each place of a long enough image once."""
    once = {*op.kernel(), *op.ints("stride"), op.int_("group")} == {1}
    return once and isinstance(op.operands[0], BlockArgument) and prod(op.shape(0)[2:]) >= LONG_IMAGE


def _is_transposed(value: SSAValue) -> bool:
    return isinstance(value, OpResult) and isinstance(value.op, TransposeOp)
