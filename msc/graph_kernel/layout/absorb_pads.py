"""Pass `absorb-pads`."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from msc.analysis.kernels import kernels_in
from msc.analysis.properties import KERNELS, UNSCHEDULED
from msc.dialects.gk import KernelOp
from msc.dialects.ms.convolution import ConvolutionOp
from msc.dialects.ms.padding import PadOp
from msc.ir.contracts import Contract


@dataclass(frozen=True)
class AbsorbPads(ModulePass):
    """Let convolutions pad their images themselves.

    Takes: kernels. Where a kernel does nothing but pad what another one computes, and all that reads it are
    convolutions of other kernels, these get the padding, and it goes: for targets whose loads fill in what lies outside
    of an image. Keeps: the meaning.
    """

    name = "absorb-pads"
    contract = Contract(requires=(KERNELS, UNSCHEDULED))

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in kernels_in(op):
            pad = kernel.body.block.first_op
            if isinstance(pad, PadOp) and pad.next_op is kernel.terminator and _only_convolved(kernel):
                for user in {use.operation for use in kernel.results[0].uses}:
                    assert isinstance(user, KernelOp)
                    _absorb(user, kernel, pad)
                kernel.detach()
                kernel.erase()


def _only_convolved(kernel: KernelOp) -> bool:
    uses = list(kernel.results[0].uses)
    if not isinstance(kernel.inputs[0].owner, KernelOp):
        return False
    return bool(uses) and all(isinstance(u.operation, KernelOp) and _convolves(u.operation, u.index) for u in uses)


def _convolves(kernel: KernelOp, index: int) -> bool:
    argument = kernel.body.block.args[index]
    uses = list(argument.uses)
    return len(uses) == 1 and isinstance(uses[0].operation, ConvolutionOp) and uses[0].index == 0


def _absorb(kernel: KernelOp, padding: KernelOp, pad: PadOp) -> None:
    """Let a kernel read what a padding reads, and pad it."""
    body, source = kernel.body.block, padding.inputs[0]
    for index, value in enumerate(kernel.inputs):
        if value is padding.results[0]:
            old = body.args[index]
            new = body.insert_arg(source.type, index)
            copy = pad.clone({pad.operands[0]: new})
            first = body.first_op
            assert first is not None
            body.insert_op_before(copy, first)
            result: SSAValue = copy.results[0]
            old.replace_all_uses_with(result)
            body.erase_arg(old)
            kernel.operands[index] = source
