"""Pass `outline-loops`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil

from xdsl.context import Context
from xdsl.dialects import func, memref, scf
from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, ModuleOp, StringAttr
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from msc.analysis.bytes import stack_bytes
from msc.analysis.index_ranges import index_range
from msc.analysis.kernel_signature import KernelSignature, kernel_signatures
from msc.analysis.properties import BUFFERS, UNPLACED, VECTORS
from msc.analysis.target import Target, target_of
from msc.dialects.loop import BufferSliceOp, ForOp, LoopKind, LoopKindAttr
from msc.dialects.loop.attributes import LOOP_CYCLES, LOOP_REASONS
from msc.ir.contracts import Contract
from msc.ir.entry import entries
from msc.lowering.cpu.memory.buffer_liveness import BufferLiveness
from msc.lowering.cpu.memory.in_place import SharedPlaces
from msc.lowering.cpu.outline.independent_loops import is_independent
from msc.lowering.cpu.outline.inlined import NotOutlined
from msc.lowering.cpu.outline.kernel_functions import KernelFunctions, call_in_place, loop_label, replace_loops
from msc.lowering.cpu.outline.loop_body import is_arithmetic
from msc.lowering.cpu.outline.loop_function import LoopFunction
from msc.support.wording import counted


@dataclass(frozen=True)
class OutlineLoops(ModulePass):
    """Loops of independent iterations as functions of their own.

    Before: `bufferize`'s @main with `scf.for` around calls of kernels' functions. After: where each iteration of a
    loop writes only entries of its own, `@main` calls one function in its place. In it the kernels' loops stand one
    after the other, what they hand to each other lies in local arrays, and entries are indices; two such loops, one
    directly in the other, are one. Threads share it where that saves more than it costs, as the cost model predicts
    of the kernels (`loop.cycles`); `loop.reasons` of the function says which. They divide no memory and
    wait for nothing inside. Elsewhere the kernels' own loops stay shared. Left alone: loops whose arrays do not fit on
    a stack, that test conditions, or read what they write.
    Functions that are no longer called are gone. The stack is that of the target.
    Keeps: all results.
    """

    name = "outline-loops"
    contract = Contract(requires=(VECTORS, BUFFERS, UNPLACED))

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Outline what can be in the entry functions."""
        functions, target = KernelFunctions(op), target_of(op)
        for entry in entries(op):
            _Outliner(entry, functions, kernel_signatures(op), target).run()


@dataclass
class _Outliner:
    entry: func.FuncOp
    functions: KernelFunctions
    signatures: Mapping[str, KernelSignature]
    target: Target

    def run(self) -> None:
        """Replace the outermost loops that can be, and erase functions that nothing calls then."""
        self.shared = SharedPlaces(BufferLiveness.of(self.entry), self.signatures)
        self.functions.erase_uncalled(replace_loops(self.entry, self._outline))

    def _outline(self, loop: scf.ForOp) -> set[str] | None:
        """Put a call in the place of a loop; the names of the functions that were inlined, None if it stays."""
        if not is_independent(loop, self.signatures):
            return None
        loops = [loop]
        while (inner := _only_loop(loops[-1])) is not None and is_independent(inner, self.signatures):
            loops.append(inner)
        building = LoopFunction(loops, self.functions.by_name, self.signatures, self._leader)
        try:
            function = building.build()
        except NotOutlined:
            return None
        if stack_bytes(function) > self.target.machine.stack:
            return None
        share(function, building.loop, cycles_of(loops[-1], self.functions), self.target)
        function.location = loop.location
        calls = [op for op in loop.walk() if isinstance(op, func.CallOp)]
        name = self.functions.add(function, loop_label(loop), calls, len(building.outputs), 0)
        given = [root for root, _, _ in (*building.inputs, *building.outputs)]
        call_in_place(loop, name, function.function_type.inputs.data, given)
        Rewriter.erase_op(loop)
        return set(building.callees)

    def _leader(self, allocation: memref.AllocOp) -> memref.AllocOp:
        return self.shared.leader(allocation) if allocation in self.shared.liveness.intervals else allocation


def _only_loop(loop: scf.ForOp) -> scf.ForOp | None:
    """The loop that stands in another with nothing beside it but views and numbers."""
    ops = [op for op in loop.body.block.ops if not _is_pure(op)]
    return ops[0] if len(ops) == 1 and isinstance(ops[0], scf.ForOp) else None


def _is_pure(op: Operation) -> bool:
    return isinstance(op, BufferSliceOp | memref.ReinterpretCastOp | scf.YieldOp) or is_arithmetic(op)


def share(function: func.FuncOp, loop: ForOp, cycles: int, target: Target) -> None:
    """Have threads share the iterations of a function's loop, of `cycles` each, if that saves more than it costs.

    The schedules of kernels decide which of their loops threads share; loops around kernels have no schedule.
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
