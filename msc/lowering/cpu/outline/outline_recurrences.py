"""Pass `outline-recurrences`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func, memref, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from msc.analysis.bytes import byte_size, stack_bytes
from msc.analysis.kernel_signature import KernelSignature, kernel_signatures
from msc.analysis.properties import BUFFERS, UNPLACED, VECTORS
from msc.analysis.target import target_of
from msc.ir.contracts import Contract
from msc.ir.entry import entries
from msc.lowering.cpu.buffer_types import root_buffer
from msc.lowering.cpu.memory.buffer_liveness import STEPS, users_through_views
from msc.lowering.cpu.outline.inlined import NotOutlined
from msc.lowering.cpu.outline.kernel_functions import KernelFunctions, call_in_place, loop_label, replace_loops
from msc.lowering.cpu.outline.recurrence_function import RecurrenceFunction
from msc.targets.machine import Machine

MOST_CALLS = 32
"""Calls of kernels in a loop, the code of each of which its function has: what bounds the time that C takes."""


@dataclass(frozen=True)
class OutlineRecurrences(ModulePass):
    """Loops that carry states as functions of their own.

    Before: @main with `scf.for` around calls of kernels' functions, copies and views. After: `@main` calls one
    function in its place. In it stands the loop, in that the kernels' loops one after the other, and before it the
    copies that states begin with; threads share the same loops of kernels as before. Loops that come out the same
    share a function. Left alone: loops that run an unknown number of times, that test conditions, carry scalars, read
    what iterations before them wrote without a copy that it begins with, call too many kernels, or pass on more in
    an iteration than the target's L2 holds, or whose local arrays do not fit on its stack together.
    Functions that are no longer called are gone. Keeps: all results, bit by bit.
    """

    name = "outline-recurrences"
    contract = Contract(
        requires=(VECTORS, BUFFERS, UNPLACED),
        runs_after={
            "outline-loops": "threads share all of a loop whose iterations are independent",
        },
    )

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Outline what can be in the entry functions."""
        functions, machine = KernelFunctions(op), target_of(op).machine
        for entry in entries(op):
            outliner = _Outliner(functions, kernel_signatures(op), machine)
            functions.erase_uncalled(replace_loops(entry, outliner.outline))


@dataclass(frozen=True)
class _Outliner:
    functions: KernelFunctions
    signatures: Mapping[str, KernelSignature]
    target: Machine

    def outline(self, loop: scf.ForOp) -> set[str] | None:
        """Put a call in the place of a loop; the names of the functions that were inlined, None if it stays."""
        calls = [op for op in loop.walk() if isinstance(op, func.CallOp)]
        made = [op for op in loop.walk() if isinstance(op, memref.AllocOp | memref.GetGlobalOp)]
        if not 0 < len(calls) <= MOST_CALLS or self._bytes(made) > self.target.l2:
            return None
        starts = _copies_before(loop)
        building = RecurrenceFunction([loop], self.functions.by_name, self.signatures, starts)
        try:
            function = building.build()
        except NotOutlined:
            return None
        if stack_bytes(function) > self.target.stack:
            return None
        function.location = loop.location
        scratch = len(building.written) - building.outputs
        name = self.functions.add(function, loop_label(loop), calls, building.outputs, scratch)
        for op in made:
            op.detach()
            Rewriter.insert_op(op, InsertPoint.before(loop))
        call_in_place(loop, name, function.function_type.inputs.data, building.arguments)
        for op in (*starts, loop):
            Rewriter.erase_op(op)
        return set(building.callees)

    def _bytes(self, made: Sequence[Operation]) -> int:
        return sum(byte_size(op.memref) for op in made if isinstance(op, memref.AllocOp))


def _copies_before(loop: scf.ForOp) -> list[memref.CopyOp]:
    """The copies into buffers of a loop between which and it nothing else touches any buffer, in order."""
    found: list[memref.CopyOp] = []
    op = loop.prev_op
    while op is not None and not op.regions and (_is_start(op, loop) or not isinstance(op, STEPS)):
        found += [op] if isinstance(op, memref.CopyOp) else []
        op = op.prev_op
    return found[::-1]


def _is_start(op: Operation, loop: scf.ForOp) -> bool:
    return isinstance(op, memref.CopyOp) and any(
        loop.is_ancestor(user) for user in users_through_views(root_buffer(op.destination))
    )
