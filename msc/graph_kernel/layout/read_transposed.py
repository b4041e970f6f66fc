"""Pass `read-transposed`."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from msc.analysis.kernels import kernels_in
from msc.analysis.properties import KERNELS, UNSCHEDULED
from msc.analysis.target import target_of
from msc.cost.register_tiles import many_channels
from msc.dialects.gk import KernelOp
from msc.dialects.ms.convolution import ConvolutionOp
from msc.graph_kernel.layout.transposed_inputs import transposed_input
from msc.ir.contracts import Contract

IMAGE, WEIGHT = 0, 1


@dataclass(frozen=True)
class ReadTransposed(ModulePass):
    """Let convolutions of transposed tensors read what is transposed.

    Takes: kernels. Gives: convolutions to many channels, as the gradients of weights are, whose image
    and weight no kernel transposes before: views at the kernel's border do (`msc.analysis.layout_views`). A weight
    whose output channels do not lie last is stored so by a kernel, so that vectors run along them. Keeps: the meaning,
    bit by bit.
    """

    name = "read-transposed"
    contract = Contract(
        requires=(KERNELS, UNSCHEDULED),
        runs_after={"assign-layouts": "gradients transpose the tensors that it stores channels last"},
    )

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        many = many_channels(target_of(op).machine)
        for kernel in kernels_in(op):
            for inner in list(kernel.body.block.ops):
                if isinstance(inner, ConvolutionOp):
                    _read(kernel, inner, many)


def _read(kernel: KernelOp, convolution: ConvolutionOp, many: int) -> None:
    weight = transposed_input(kernel, convolution.operands[WEIGHT])
    if weight is None or convolution.result_shape()[1] < many:
        return
    image = transposed_input(kernel, convolution.operands[IMAGE])
    if not weight.is_last(0):
        weight = weight.stored_last(0, kernel)
    for found in (weight, image):
        if found is not None:
            found.read()
