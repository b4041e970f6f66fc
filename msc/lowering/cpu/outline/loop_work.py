"""Decides by the cost model's predictions for its kernels whether threads share a loop of the entry function.

The schedules of kernels decide which of their loops threads share; loops around kernels have no schedule.
"""

from __future__ import annotations

from math import ceil

from xdsl.dialects import func, scf
from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, StringAttr
from xdsl.ir import Operation

from msc.analysis.index_ranges import index_range
from msc.analysis.target import Target
from msc.dialects.loop import ForOp, LoopKind, LoopKindAttr
from msc.dialects.loop.attributes import LOOP_CYCLES, LOOP_REASONS
from msc.lowering.cpu.outline.kernel_functions import KernelFunctions
from msc.support.wording import counted


def share(function: func.FuncOp, loop: ForOp, cycles: int, target: Target) -> None:
    """Have threads share the iterations of a function's loop, of `cycles` each, if that saves more than it costs.

    Then no loop inside is shared, whatever the schedule of its kernel says. The reason stands on the function.
    """
    trips, costs = loop.most_iterations or 0, target.machine.synchronisation.team
    saved = (trips - ceil(trips / target.team)) * cycles
    what = f"{counted(trips, 'iteration')} of {counted(cycles, 'cycle')}"
    if target.team == 1:
        return
    if saved < max(1, costs):
        reason = f"{what}: threads would save {counted(saved, 'cycle')}, and cost {costs:,.0f}"
    else:
        loop.kind = LoopKindAttr(LoopKind.PARALLEL)
        alone = ", each of which runs the parallel loops of its kernels on one thread" if run_alone(loop) else ""
        reason = f"threads share {what}{alone}"
    function.attributes[LOOP_REASONS] = ArrayAttr([StringAttr(reason)])


def run_alone(loop: ForOp) -> bool:
    """Loops in one that threads share run on the thread that has the iteration. Whether there are any."""
    inside = [op for op in loop.body.walk() if isinstance(op, ForOp) and op.kind.data is LoopKind.PARALLEL]
    for op in inside:
        op.kind, op.least = LoopKindAttr(LoopKind.SEQUENTIAL), None
    return bool(inside)


def cycles_of(op: Operation, functions: KernelFunctions) -> int:
    """What the kernels that run in an iteration of a loop take on one thread; a loop of unknown length runs twice."""
    total = 0
    for inner in (inner for region in op.regions for block in region.blocks for inner in block.ops):
        if isinstance(inner, func.CallOp):
            found = functions.by_name[inner.callee.string_value()].attributes.get(LOOP_CYCLES)
            total += found.value.data if isinstance(found, IntegerAttr) else 0
        else:
            total += _most_iterations(inner) * cycles_of(inner, functions)
    return total


def _most_iterations(op: Operation) -> int:
    if not isinstance(op, scf.ForOp):
        return 1
    counter, step = index_range(op.body.block.args[0]), index_range(op.step)
    return 2 if counter is None or step is None else (counter[1] - counter[0]) // max(1, step[0]) + 1
