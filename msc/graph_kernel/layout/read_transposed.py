"""Pass `read-transposed`."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import BlockArgument, OpResult, SSAValue
from xdsl.passes import ModulePass

from msc.analysis.properties import KERNELS, UNSCHEDULED
from msc.analysis.target import target_of
from msc.cost.register_tiles import many_channels
from msc.dialects.gk import KernelOp
from msc.dialects.ms.convolution import ConvolutionOp
from msc.dialects.ms.movement import TransposeOp
from msc.graph_kernel.layout.stored_inputs import read_stored, transposition_kernel
from msc.ir.contracts import Contract
from msc.ir.typed import static_shape

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
        runs_after={"assign-layouts": "what it stores channels last is what gradients transpose"},
    )

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        many = many_channels(target_of(op).machine)
        for kernel in [k for k in op.walk() if isinstance(k, KernelOp)]:
            for inner in list(kernel.body.block.ops):
                if isinstance(inner, ConvolutionOp):
                    _read(kernel, inner, many)


def _read(kernel: KernelOp, convolution: ConvolutionOp, many: int) -> None:
    weight = _transposed(kernel, convolution.operands[WEIGHT])
    if weight is None or convolution.result_shape()[1] < many:
        return
    image = _transposed(kernel, convolution.operands[IMAGE])
    if not weight.is_last(0):
        weight = weight.stored_last(0, kernel)
    for found in (weight, image):
        if found is not None:
            found.read()


@dataclass(frozen=True)
class _Transposed:
    """Input `index` of a kernel: `source`, which a kernel transposes by `perm`."""

    kernel: KernelOp
    index: int
    source: SSAValue
    perm: tuple[int, ...]

    def is_last(self, axis: int) -> bool:
        """Whether an axis of the input is the last one of the source."""
        return self.perm[axis] == len(self.perm) - 1

    def stored_last(self, axis: int, kernel: KernelOp) -> _Transposed:
        """The same of a source that a new kernel stores with the axis last."""
        axes = [*(k for k in range(len(self.perm)) if k != axis), axis]
        moving = transposition_kernel("to_channels_last", self.source, tuple(self.perm[k] for k in axes))
        moving.location = kernel.location
        block = kernel.parent
        assert block is not None
        block.insert_op_before(moving, kernel)
        return _Transposed(self.kernel, self.index, moving.results[0], tuple(map(axes.index, range(len(axes)))))

    def read(self) -> None:
        """Let the kernel read the source; the transposition goes if nothing else needs it."""
        before = self.kernel.operands[self.index].owner
        read_stored(self.kernel.body.block, self.index, self.source, self.perm)
        self.kernel.operands[self.index] = self.source
        if isinstance(before, KernelOp) and not any(result.uses for result in before.results):
            before.detach()
            before.erase()


def _transposed(kernel: KernelOp, operand: SSAValue) -> _Transposed | None:
    """What an operand is a transposition of, if it is an input of the kernel that another kernel only transposes."""
    if not isinstance(operand, BlockArgument) or operand.uses.get_length() != 1:
        return None
    value = kernel.inputs[operand.index]
    mover = value.owner
    if not isinstance(value, OpResult) or not isinstance(mover, KernelOp) or mover.parent is not kernel.parent:
        return None
    perm = tuple(range(len(static_shape(value))))
    inner: SSAValue = mover.terminator.values[value.index]
    while isinstance(inner.owner, TransposeOp):
        step = inner.owner.ints("perm")
        perm = tuple(step[k] for k in perm)
        inner = inner.owner.operands[0]
    if not isinstance(inner, BlockArgument):
        return None
    return _Transposed(kernel, operand.index, mover.inputs[inner.index], perm)
