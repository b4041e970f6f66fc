"""Pass `pack-filters`."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import BlockArgument
from xdsl.passes import ModulePass

from msc.analysis.constancy import Constancy
from msc.analysis.properties import KERNELS, UNSCHEDULED, WEIGHTS_HOISTED
from msc.dialects.element_types import BYTES
from msc.dialects.gk import KernelOp
from msc.dialects.ms.convolution import ConvolutionOp
from msc.graph_kernel.layout.pack_operands import Packing
from msc.graph_kernel.layout.stored_inputs import moving_kernel, read_stored
from msc.ir.contracts import Contract

BLOCK_BYTES = 32
"""Bytes of the channels that lie together: one row of a fractal."""


@dataclass(frozen=True)
class PackFilters(ModulePass):
    """Store the filters of convolutions as the fractals that a cube reads.

    Takes: kernels. Gives: `[oc, ic, kh, kw]` as `[ic1, kh, kw, oc, ic0]`; ic0 are the channels of 32 bytes, the last
    ones filled up with zeros. A kernel reads its filter through a view; `hoist-parameters` packs weights at compile
    time. Filters of groups stay. Keeps: the meaning.
    """

    name = "pack-filters"
    contract = Contract(requires=(KERNELS, UNSCHEDULED), breaks=(WEIGHTS_HOISTED,))

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in [k for k in op.walk() if isinstance(k, KernelOp)]:
            for convolution in list(kernel.body.block.ops):
                if isinstance(convolution, ConvolutionOp):
                    _pack(kernel, convolution)


def _pack(kernel: KernelOp, op: ConvolutionOp) -> None:
    filters = op.operands[1]
    if not isinstance(filters, BlockArgument) or filters.uses.get_length() != 1 or op.int_("group") > 1:
        return
    shape = op.shape(1)
    if len(shape) != 4 or shape[2] * shape[3] == 1:
        return
    block = BLOCK_BYTES // BYTES[op.dtype(1)]
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
