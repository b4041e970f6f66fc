"""Inputs of kernels that other kernels only transpose."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import BlockArgument, OpResult, SSAValue

from msc.dialects.gk import KernelOp
from msc.dialects.ms.movement import TransposeOp
from msc.graph_kernel.layout.stored_inputs import read_stored, transposition_kernel
from msc.ir.typed import static_shape


@dataclass(frozen=True)
class TransposedInput:
    """Input `index` of a kernel: `source`, which a kernel transposes by `perm`."""

    kernel: KernelOp
    index: int
    source: SSAValue
    perm: tuple[int, ...]

    def is_last(self, axis: int) -> bool:
        """Whether an axis of the input is the last one of the source."""
        return self.perm[axis] == len(self.perm) - 1

    def stored_last(self, axis: int, kernel: KernelOp) -> TransposedInput:
        """The same of a source that a new kernel stores with the axis last."""
        axes = [*(k for k in range(len(self.perm)) if k != axis), axis]
        moving = transposition_kernel("to_channels_last", self.source, tuple(self.perm[k] for k in axes))
        moving.location = kernel.location
        block = kernel.parent
        assert block is not None
        block.insert_op_before(moving, kernel)
        return TransposedInput(self.kernel, self.index, moving.results[0], tuple(map(axes.index, range(len(axes)))))

    def read(self) -> None:
        """Let the kernel read the source; the transposition goes if nothing else needs it."""
        before = self.kernel.operands[self.index].owner
        read_stored(self.kernel.body.block, self.index, self.source, self.perm)
        self.kernel.operands[self.index] = self.source
        if isinstance(before, KernelOp) and not any(result.uses for result in before.results):
            before.detach()
            before.erase()


def transposed_input(kernel: KernelOp, operand: SSAValue) -> TransposedInput | None:
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
    return TransposedInput(kernel, operand.index, mover.inputs[inner.index], perm)
