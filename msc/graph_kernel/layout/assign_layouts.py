"""Pass `assign-layouts`."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass

from msc.analysis.bytes import constant_bytes
from msc.analysis.kernels import blocks_outside_kernels, kernels_in
from msc.analysis.properties import KERNELS, UNSCHEDULED, WEIGHTS_HOISTED
from msc.analysis.target import target_of
from msc.cost.register_tiles import many_channels
from msc.dialects.gk import KernelOp
from msc.dialects.open_sizes import has_open_sizes
from msc.graph_kernel.layout.block_layouts import BlockLayouts
from msc.graph_kernel.layout.image_forms import first_guess
from msc.graph_kernel.layout.layout_choice import LayoutChoice
from msc.ir.contracts import Contract
from msc.schedule.kernel_cycles import KernelCycles


@dataclass(frozen=True)
class AssignLayouts(ModulePass):
    """Let images between kernels lie channels last.

    Takes: kernels on `[n, c, spatial...]` images. Gives: the same kernels, whose inputs and outputs are transposed at
    their borders (`msc.analysis.layout_views`: that costs nothing), so that what stands between convolutions,
    poolings, their paddings and their
    neighbours lies as `[n, spatial..., c]`: vectors run along channels, whatever the stride. Where a value
    leaves the kernels (a view, a result of the function), one transposition brings it back, in the kernel itself if
    that computes element by element. Kernels that are faster so read and give images channels first: their vectors
    run along the image. Keeps: the meaning, bit by bit.

    The first guess are channels last for images whose channels fill half a line. Where the other layout may fill
    vectors better, or saves a transposition, the cost model compares both (`layout_choice`), unless `compare=false`.

    With `few_channels=true` images of any number of channels, as matrix units take them.
    """

    name = "assign-layouts"
    contract = Contract(
        requires=(KERNELS, UNSCHEDULED),
        breaks=(WEIGHTS_HOISTED,),
        runs_after={
            "winograd": "its transforms are kernels that read and write images",
            "fuse-pads": "a kernel is given its layout with its padding",
        },
    )

    few_channels: bool = False
    compare: bool = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        many = 1 if self.few_channels else many_channels(target_of(op).machine)
        compare = self.compare and not self.few_channels and not has_open_sizes(op)
        cycles = KernelCycles.on_one_thread(op)
        between = constant_bytes(value for kernel in kernels_in(op) for value in kernel.inputs)
        for function in op.ops:
            if isinstance(function, FuncOp):
                for block in blocks_outside_kernels(function):
                    guess = {k: first_guess(k, many) for k in block.ops if isinstance(k, KernelOp)}
                    forms = LayoutChoice(ctx, cycles, between, block, guess).forms() if compare else guess
                    BlockLayouts(block, forms).assign()
        cycles.loops.attach(op)
