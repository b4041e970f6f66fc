"""Pass `outline-loops`: a loop of the entry function whose iterations are independent becomes one kernel's function.

Before: `bufferize`'s @main with `scf.for` around calls of kernels' functions. After: where each iteration of a loop
writes only entries of its own, `@main` calls one function in its place. In it the kernels' loops stand one after the
other, what they hand to each other lies in local arrays, and entries are indices; two such loops, one directly
in the other, are one. Threads share it, which leaves them no memory to divide and nothing to wait for inside.
Left alone: loops whose arrays do not fit on a stack, that test conditions, or read what they write.
Functions that are no longer called are gone. Option: `threads`, 1 for none. Keeps: all results.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func, memref, scf
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, StringAttr, i64
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from msc.dialects.loop import EntryOp, LoopKind
from msc.ir.entry import find_entry
from msc.ir.typed import memref_type
from msc.lowering.buffer_liveness import BufferLiveness
from msc.lowering.buffer_types import byte_size, contiguous_view
from msc.lowering.in_place import SharedPlaces
from msc.lowering.independent_loops import is_independent
from msc.lowering.inlined import NotOutlined, note_kernels
from msc.lowering.kernel_signature import OUTPUTS, TEMPORARIES, kernel_signatures
from msc.lowering.loop_function import LoopFunction
from msc.lowering.verify_loop_stage import STACK_BYTES

LABEL = "gk.label"
"""What the function of a loop is named after, where the loop says it."""


@dataclass(frozen=True)
class OutlineLoopsPass(ModulePass):
    """Loops of independent iterations as functions of their own."""

    name = "outline-loops"
    threads: int = 1

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Outline what can be in @main."""
        entry = find_entry(op)
        functions = {f.sym_name.data: f for f in op.ops if isinstance(f, func.FuncOp) and f is not entry}
        if entry is not None:
            _Outliner(op, entry, functions, LoopKind.SEQUENTIAL if self.threads == 1 else LoopKind.PARALLEL).run()


@dataclass
class _Outliner:
    module: ModuleOp
    entry: func.FuncOp
    functions: dict[str, func.FuncOp]
    kind: LoopKind

    def run(self) -> None:
        """Replace the outermost loops that can be, and erase functions that nothing calls then."""
        self.signatures = kernel_signatures(self.module)
        self.shared = SharedPlaces(BufferLiveness.of(self.entry), self.signatures)
        inlined = self._outline_in(self.entry)
        called = {op.callee.string_value() for op in self.entry.walk() if isinstance(op, func.CallOp)}
        for name in inlined - called:
            self.module.body.block.erase_op(self.functions[name])

    def _outline_in(self, op: Operation) -> set[str]:
        """Outline in the regions of an operation; a loop in one that is outlined goes with it."""
        inlined: set[str] = set()
        for inner in [inner for region in op.regions for block in region.blocks for inner in block.ops]:
            found = self._outline(inner) if isinstance(inner, scf.ForOp) else None
            inlined |= self._outline_in(inner) if found is None else found
        return inlined

    def _outline(self, loop: scf.ForOp) -> set[str] | None:
        """Put a call in the place of a loop; the names of the functions that were inlined, None if it stays."""
        if not is_independent(loop, self.signatures):
            return None
        loops = [loop]
        while (inner := _only_loop(loops[-1])) is not None and is_independent(inner, self.signatures):
            loops.append(inner)
        building = LoopFunction(loops, self.functions, self.signatures, self._leader, self.kind)
        try:
            function = building.build()
        except NotOutlined:
            return None
        if sum(byte_size(op.memref) for op in function.walk() if isinstance(op, memref.AllocaOp)) > STACK_BYTES:
            return None
        self._name(function, loop, building)
        self.module.body.block.insert_op_before(function, self.entry)
        self._call(function, loop, [*building.inputs, *building.outputs])
        return set(building.callees)

    def _leader(self, allocation: memref.AllocOp) -> memref.AllocOp:
        return self.shared.leader(allocation) if allocation in self.shared.liveness.intervals else allocation

    def _name(self, function: func.FuncOp, loop: scf.ForOp, building: LoopFunction) -> None:
        label = loop.attributes.get(LABEL)
        text = label.data if isinstance(label, StringAttr) else "loop"
        numbers = sum(OUTPUTS in f.attributes for f in self.module.body.block.ops)
        function.sym_name = StringAttr(f"k{numbers}_{text}")
        function.attributes[OUTPUTS] = IntegerAttr(len(building.outputs), i64)
        function.attributes[TEMPORARIES] = IntegerAttr(0, i64)
        calls = [op.callee.string_value() for op in loop.walk() if isinstance(op, func.CallOp)]
        note_kernels(function, [self.functions[name] for name in calls])
        function.location = loop.location

    def _call(
        self, function: func.FuncOp, loop: scf.ForOp, given: Sequence[tuple[SSAValue, tuple[int, ...], object]]
    ) -> None:
        block = loop.parent
        assert block is not None
        new: list[Operation] = []
        arguments: list[SSAValue] = []
        for (root, _, _), type_ in zip(given, function.function_type.inputs, strict=True):
            view = contiguous_view(root, memref_type(type_))
            new += [view] if root.type != type_ else []
            arguments.append(view.result if root.type != type_ else root)
        call = func.CallOp(function.sym_name.data, arguments, [])
        for op in (*new, call):
            op.location = loop.location
            block.insert_op_before(op, loop)
        block.erase_op(loop)


def _only_loop(loop: scf.ForOp) -> scf.ForOp | None:
    """The loop that stands in another with nothing beside it but views and numbers."""
    ops = [op for op in loop.body.block.ops if not _is_pure(op)]
    return ops[0] if len(ops) == 1 and isinstance(ops[0], scf.ForOp) else None


def _is_pure(op: Operation) -> bool:
    return isinstance(op, EntryOp | memref.ReinterpretCastOp | scf.YieldOp) or (
        op.name.startswith("arith.") and not op.regions
    )
