"""Pass `pack-filters`."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import BlockArgument, Operation
from xdsl.passes import ModulePass

from msc.analysis.constancy import Constancy
from msc.analysis.kernels import kernels_in
from msc.analysis.properties import KERNELS, UNSCHEDULED, WEIGHTS_HOISTED
from msc.analysis.target import target_of
from msc.dialects.element_types import BYTES
from msc.dialects.gk import KernelOp
from msc.dialects.ms.convolution import ConvolutionOp
from msc.dialects.ms.padding import PadOp
from msc.dialects.ms.views import ReshapeOp
from msc.graph_kernel.layout.packings import Packing
from msc.graph_kernel.layout.stored_inputs import moving_kernel, read_stored, transposition_kernel
from msc.ir.contracts import Contract
from msc.ir.typed import static_shape


@dataclass(frozen=True)
class PackFilters(ModulePass):
    """Store the operands of convolutions as a cube reads them: filters in fractals, images channels last.

    Takes: kernels. Gives: `[oc, ic, kh, kw]` as `[ic1, kh, kw, oc, ic0]`; ic0 are the channels of a row of a fractal,
    the bytes to which L1 aligns buffers; the last ones are filled up with zeros. Where kernels run on cores without
    such an L1, nothing changes. A kernel reads its filter through a view; `hoist-parameters` packs weights at compile
    time. Images that lie otherwise are transposed by a kernel in front. Groups lie one behind the other; a convolution
    of each channel by itself stays. Keeps: the meaning.
    """

    name = "pack-filters"
    contract = Contract(requires=(KERNELS, UNSCHEDULED), breaks=(WEIGHTS_HOISTED,))

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        l1 = target_of(op).cores.abilities.scopes.get("l1")
        if l1 is None:
            return
        for kernel in kernels_in(op):
            for convolution in list(kernel.body.block.ops):
                if isinstance(convolution, ConvolutionOp) and _has_windows(convolution):
                    _transpose_image(kernel, convolution)
                    _pack(kernel, convolution, l1.align)


def _has_windows(op: ConvolutionOp) -> bool:
    """Whether a convolution is a product of windows: an image, several taps; not channel by channel."""
    shape, group = op.shape(1), op.int_("group")
    return len(shape) == 4 and shape[2] * shape[3] > 1 and (group == 1 or max(shape[0] // group, shape[1]) > 1)


def _transpose_image(kernel: KernelOp, op: ConvolutionOp) -> None:
    """Let an image lie channels last, by a kernel in front, if it does not."""
    image = op.operands[0]
    while isinstance(image.owner, PadOp):
        image = image.owner.operands[0]
    if not isinstance(image, BlockArgument) or image.uses.get_length() != 1:
        return
    value, around = kernel.inputs[image.index], kernel.parent
    assert around is not None
    n, c, h, w = static_shape(value)
    transposed: Operation = ReshapeOp(value, shape=(n, h, w, c))
    if c > 1 and h * w > 1:
        transposed = transposition_kernel("to_channels_last", value, (0, 2, 3, 1))
    transposed.location = op.location
    around.insert_op_before(transposed, kernel)
    index = image.index
    read_stored(kernel.body.block, index, transposed.results[0], (0, 3, 1, 2))
    kernel.operands[index] = transposed.results[0]


def _pack(kernel: KernelOp, op: ConvolutionOp, row_bytes: int) -> None:
    """Read the filter of a convolution in fractals whose rows have so many bytes."""
    filters, shape = op.operands[1], op.shape(1)
    if not isinstance(filters, BlockArgument) or filters.uses.get_length() != 1:
        return
    block = row_bytes // BYTES[op.dtype(1)]
    outputs, inputs, *taps = shape
    blocks = -(-inputs // block)
    packing = Packing((outputs, blocks * block, *taps), (outputs, blocks, block, *taps), (1, 3, 4, 0, 2))
    index = filters.index
    value, around = kernel.inputs[index], kernel.parent
    assert around is not None
    moves = packing.moves(value) if Constancy().of(value) else [moving_kernel("pack", value, packing.moves)]
    for moved in moves:
        moved.location = op.location
        around.insert_op_before(moved, kernel)
    read_stored(kernel.body.block, index, moves[-1].results[0], packing.inverse, packing.padded)
    kernel.operands[index] = moves[-1].results[0]
