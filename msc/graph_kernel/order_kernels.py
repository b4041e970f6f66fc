"""Pass `order-kernels`."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block
from xdsl.passes import ModulePass

from msc.analysis.properties import KERNELS, UNSCHEDULED
from msc.dialects.gk import KernelOp
from msc.dialects.open_sizes import has_open_sizes
from msc.graph_kernel.kernel_steps import KernelSteps, blocks_of_steps
from msc.ir.contracts import Contract
from msc.ir.entry import entries


@dataclass(frozen=True)
class OrderKernels(ModulePass):
    """Put the kernels of entry functions, and of loops in them, into an order in which fewer bytes are live at a time.

    Takes: kernels. Gives: the same kernels; where the peak falls, those whose results are larger than what they read
    last stand right before the first that needs them, as a transposed weight does, and those with which more dies than
    they make right behind what they need, as the update of a weight does. Left as they are: kernels that are
    computed block by block, and loops. An argument that a result updates, or that a loop carries, is read by all others
    first, so that it is updated in place: a kernel that updates one stands behind all that read it and need nothing of
    the kernel. Keeps: the meaning, bit by bit.
    """

    name = "order-kernels"
    contract = Contract(
        requires=(KERNELS, UNSCHEDULED),
        runs_after={
            "pack-operands": "packed operands are computed directly before their readers",
            "compute-at-consumers": "values between members take no buffer",
            "winograd": "it makes kernels",
        },
    )

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if has_open_sizes(op):
            return
        for function in entries(op):
            for block in blocks_of_steps(function):
                put_in_order(block)


def put_in_order(block: Block) -> None:
    """The order of the operations of a function or of a loop's body in which the fewest bytes are live at a time."""
    _update_behind_readers(block)
    graph = KernelSteps(block)
    order = graph.steps.best_order()
    last = block.last_op
    if order == sorted(order) or last is None:
        return
    for number in order:
        op = graph.ops[number]
        op.detach()
        block.insert_op_before(op, last)


def _update_behind_readers(block: Block) -> None:
    """Move kernels that update an argument behind its last reader, if nothing on the way needs what they make."""
    graph = KernelSteps(block)
    for result, argument in graph.updated.items():
        kernel = result.owner
        behind = graph.last_reader(argument)
        if not isinstance(kernel, KernelOp) or behind is None or not kernel.is_before_in_block(behind):
            continue
        readers = [graph.ops[n] for made in kernel.results for n in graph.readers(made)]
        if not any(reader is behind or reader.is_before_in_block(behind) for reader in readers):
            kernel.detach()
            block.insert_op_after(kernel, behind)
