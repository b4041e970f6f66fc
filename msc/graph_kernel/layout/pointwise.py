"""What vectors along an image compute as well as vectors along its channels: pointwise convolutions and poolings."""

from __future__ import annotations

from math import prod

from xdsl.ir import BlockArgument, OpResult, SSAValue

from msc.analysis.target import target_of
from msc.cost.access import EVERY_OTHER, pieces
from msc.cost.regrouped_lanes import transposed
from msc.dialects.element_types import BYTES
from msc.dialects.gk import KernelOp
from msc.dialects.ms.convolution import ConvolutionOp
from msc.dialects.ms.movement import TransposeOp
from msc.dialects.ms.pooling import BasicPoolingOp


def runs_along_image(kernel: KernelOp) -> bool:
    """Whether the kernel's vectors may run along an image that lies channels first, as its result does."""
    windows = [op for op in kernel.body.block.ops if isinstance(op, ConvolutionOp | BasicPoolingOp)]
    as_they_lie = not any(_is_transposed(v) for v in kernel.terminator.values)
    return len(windows) == 1 and as_they_lie and _has_rows(windows[0])


def _has_rows(op: ConvolutionOp | BasicPoolingOp) -> bool:
    """Whether a pointwise convolution, or a pooling, is of an argument whose rows are vectors."""
    lanes = target_of(op).machine.lanes(BYTES["f32"])
    if not isinstance(op.operands[0], BlockArgument):
        return False
    if isinstance(op, BasicPoolingOp):
        near = op.ints("stride")[-1] <= EVERY_OTHER
        return near and op.result_shape()[-1] >= lanes and _fills_vectors(op, lanes)
    once = {*op.kernel(), *op.ints("stride"), op.int_("group")} == {1}
    return once and prod(op.shape(0)[2:]) >= 2 * lanes


def _fills_vectors(op: BasicPoolingOp, lanes: int) -> bool:
    """Whether the lanes that rows leave empty at each tap take less than to transpose the image and the result."""
    row = op.result_shape()[-1]
    empty = lanes * pieces(row, lanes) / row - 1
    moves = transposed(1, lanes, lanes)
    return moves is None or prod(op.kernel()) * empty <= (1 + prod(op.ints("stride"))) * moves.all


def _is_transposed(value: SSAValue) -> bool:
    return isinstance(value, OpResult) and isinstance(value.op, TransposeOp)
