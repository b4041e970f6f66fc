"""Pass `read-slices`."""

from __future__ import annotations

from dataclasses import dataclass, replace

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import BlockArgument, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from msc.analysis.bytes import constant_bytes
from msc.analysis.patterns import is_cut
from msc.analysis.properties import KERNELS, UNSCHEDULED
from msc.analysis.target import target_of
from msc.dialects.gk import KernelOp
from msc.dialects.ms.convolution import ConvolutionOp
from msc.dialects.ms.movement import TransposeOp
from msc.dialects.open_sizes import has_open_sizes
from msc.graph_kernel.layout.stored_inputs import erase_unread, only_moves, repeated
from msc.ir.contracts import Contract
from msc.ir.typed import static_shape
from msc.schedule.kernel_cycles import KernelCycles


@dataclass(frozen=True)
class ReadSlices(ModulePass):
    """Let convolutions read slices of tensors in place, where that takes less time than copying them.

    Takes: kernels. Gives: convolutions whose image no kernel copies before, if that is a box of a tensor which lies in
    memory in the same order of axes: an `ms.slice` at the border of the kernel is a view
    (`msc.analysis.layout_views`). A copy has the advantage that axes of the image merge into one, which fills tiles
    better; the cost model compares both, with the schedules that they would get on one thread. Left alone: all where
    calls decide sizes. Keeps: the meaning, bit by bit.
    """

    name = "read-slices"
    contract = Contract(
        requires=(KERNELS, UNSCHEDULED),
        runs_after={"assign-layouts": "it decides the order of axes in which the tensor and its slice lie in memory"},
    )

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if has_open_sizes(op):
            return
        cycles = KernelCycles.on(replace(target_of(op), threads=1))
        kernels = [k for k in op.walk() if isinstance(k, KernelOp)]
        slices = {kernel: found for kernel in kernels if (found := _slice_of(kernel)) is not None}
        between = constant_bytes(value for kernel in kernels for value in kernel.inputs) if slices else 0
        for kernel, argument in slices.items():
            _read_if_faster(kernel, argument, cycles, between)


def _slice_of(kernel: KernelOp) -> int | None:
    """Which input of a kernel is the image of a convolution that another kernel only slices."""
    for op in kernel.body.block.ops:
        if isinstance(op, ConvolutionOp):
            argument = _stored(op.x)
            if isinstance(argument, BlockArgument) and argument.block is kernel.body.block:
                owner = kernel.inputs[argument.index].owner
                if isinstance(owner, KernelOp) and _only_slices(owner):
                    return argument.index
    return None


def _stored(value: SSAValue) -> SSAValue:
    """What a value is a transposition of."""
    while isinstance(value.owner, TransposeOp):
        value = value.owner.x
    return value


def _only_slices(kernel: KernelOp) -> bool:
    """Whether a kernel takes a box out of a tensor, and leaves the order of its axes in memory."""
    *moves, _ = kernel.body.block.ops
    if not only_moves(kernel) or not any(map(is_cut, moves)):
        return False
    order = list(range(len(static_shape(kernel.inputs[0]))))
    for op in moves:
        if isinstance(op, TransposeOp):
            order = [order[axis] for axis in op.ints("perm")]
        elif not is_cut(op):
            return False
    return order == sorted(order)


def _read_if_faster(kernel: KernelOp, index: int, cycles: KernelCycles, between: int) -> None:
    """Put a kernel that reads a slice in place of one that reads its copy, if it is the faster one."""
    value = kernel.inputs[index]
    assert isinstance(value.owner, KernelOp)
    reading = _reading(kernel, index, value.owner)
    if cycles.of([reading], between) < cycles.of([value.owner, kernel], between):
        Rewriter.replace_op(kernel, reading)
        erase_unread(value)


def _reading(kernel: KernelOp, index: int, copy: KernelOp) -> KernelOp:
    """A kernel that reads what another one copies a slice of."""
    made = kernel.clone()
    body = made.body.block
    argument, stored = body.args[index], body.insert_arg(copy.inputs[0].type, index)
    stored.name_hint = argument.name_hint
    *moves, _ = copy.body.block.ops
    views = repeated(moves, stored)
    first = body.first_op
    assert first is not None
    body.insert_ops_before(views, first)
    argument.replace_all_uses_with(views[-1].results[0])
    body.erase_arg(argument)
    made.operands[index] = copy.inputs[0]
    return made
