"""Pointwise convolutions: products of a matrix with the image, whose rows are as long as the whole image."""

from __future__ import annotations

from math import prod

from xdsl.ir import BlockArgument, OpResult, SSAValue

from msc.analysis.target import target_of
from msc.dialects.element_types import BYTES
from msc.dialects.gk import KernelOp
from msc.dialects.ms.convolution import ConvolutionOp
from msc.dialects.ms.movement import TransposeOp


def runs_along_image(kernel: KernelOp) -> bool:
    """Whether the kernel is a pointwise convolution of an image that lies channels first, as its result does."""
    convolutions = [op for op in kernel.body.block.ops if isinstance(op, ConvolutionOp)]
    as_they_lie = not any(_is_transposed(v) for v in kernel.terminator.values)
    return len(convolutions) == 1 and as_they_lie and _is_pointwise(convolutions[0])


def _is_pointwise(op: ConvolutionOp) -> bool:
    """Whether a convolution of an argument visits each place of an image, which is two vectors or more, once."""
    once = {*op.kernel(), *op.ints("stride"), op.int_("group")} == {1}
    two_vectors = 2 * target_of(op).machine.lanes(BYTES["f32"])
    return once and isinstance(op.operands[0], BlockArgument) and prod(op.shape(0)[2:]) >= two_vectors


def _is_transposed(value: SSAValue) -> bool:
    return isinstance(value, OpResult) and isinstance(value.op, TransposeOp)
