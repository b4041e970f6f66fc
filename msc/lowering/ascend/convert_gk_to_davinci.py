"""Pass `convert-gk-to-davinci`."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr, SymbolRefAttr
from xdsl.passes import ModulePass

from msc.analysis.kernel_model import kernel_model, output_positions
from msc.analysis.kernels import kernels_in
from msc.analysis.properties import KERNELS, SCHEDULED, SHAPES_KNOWN, UNSCHEDULED
from msc.dialects import davinci, gk
from msc.dialects.davinci.attributes import DAVINCI_KERNEL
from msc.dialects.gk.attributes import GK_SCHEDULE, GK_SCHEDULE_REASONS
from msc.ir.contracts import Contract
from msc.lowering.ascend.insert_sync import synchronise
from msc.lowering.ascend.kernels import write_kernel
from msc.lowering.ascend.target import davinci_of
from msc.support.progress import step


@dataclass(frozen=True)
class ConvertGkToDavinci(ModulePass):
    """A kernel of queue instructions for every `gk.kernel`, with its flags.

    Takes kernels of basic operations. Writes a `davinci.kernel` for each, one for all that compute the same, and names
    it on the kernel as `davinci.kernel`. What neither the cube nor the vector unit does becomes scalar work. A schedule
    that is there is followed; other kernels get the one that theirs follows.

    Raises MSC0408 for a schedule that neither unit can follow.
    """

    name = "convert-gk-to-davinci"
    contract = Contract(requires=(SHAPES_KNOWN, KERNELS), ensures=(SCHEDULED,), breaks=(UNSCHEDULED,))

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        target = davinci_of(op)
        written: dict[object, tuple[davinci.DavinciKernelOp, gk.KernelOp]] = {}
        kernels = kernels_in(op)
        for number, kernel in enumerate(kernels, 1):
            step(f"convert-gk-to-davinci: {number} of {len(kernels)}, {kernel.label.data}")
            lines = tuple(kernel.schedule.lines) if kernel.schedule is not None else ()
            key = kernel_model(kernel).structure, output_positions(kernel), lines
            if key not in written:
                made = write_kernel(kernel, target, f"c{len(written)}_{kernel.label.data}")
                synchronise(made)
                op.body.block.add_op(made)
                written[key] = made, kernel
            made, first = written[key]
            kernel.attributes[DAVINCI_KERNEL] = SymbolRefAttr(StringAttr(made.sym_name.data))
            for noted in (GK_SCHEDULE, GK_SCHEDULE_REASONS):
                kernel.attributes[noted] = first.attributes[noted]
