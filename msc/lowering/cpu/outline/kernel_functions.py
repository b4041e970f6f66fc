"""The kernel functions of a module, and those that passes add for several calls; equal functions have one name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, count

from xdsl.dialects import func, scf
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, StringAttr, i64
from xdsl.ir import Attribute, Operation, SSAValue

from msc.dialects.gk import LOOP_LABEL
from msc.dialects.loop.attributes import LOOP_OUTPUTS, LOOP_TEMPORARIES
from msc.ir.entry import entries
from msc.ir.typed import memref_type
from msc.lowering.cpu.buffer_types import contiguous_view
from msc.lowering.cpu.outline.inlined import note_kernels


@dataclass
class KernelFunctions:
    """What the entry functions may call; new functions come in front of the first of them."""

    module: ModuleOp
    by_name: Mapping[str, func.FuncOp] = field(init=False)
    _added: list[func.FuncOp] = field(init=False, default_factory=list[func.FuncOp])

    def __post_init__(self) -> None:
        self.by_name = {f.sym_name.data: f for f in self.module.ops if isinstance(f, func.FuncOp)}

    def add(self, function: func.FuncOp, label: str, calls: Sequence[func.CallOp], outputs: int, scratch: int) -> str:
        """The name of a function that stands for calls: of one that is there and does the same, or of this one.

        Behind its inputs it takes outputs, and then scratch.
        """
        function.attributes |= {LOOP_OUTPUTS: IntegerAttr(outputs, i64), LOOP_TEMPORARIES: IntegerAttr(scratch, i64)}
        note_kernels(function, [self.by_name[call.callee.string_value()] for call in calls])
        for other in self._added:
            if other.attributes == function.attributes and other.body.is_structurally_equivalent(function.body):
                return other.sym_name.data
        self._added.append(function)
        return self.place(function, label)

    def place(self, function: func.FuncOp, label: str) -> str:
        """Put a function into the module under a number and a label; the name."""
        taken = [
            op.sym_name.data for op in self.module.ops if isinstance(op, func.FuncOp) and LOOP_OUTPUTS in op.attributes
        ]
        name = next(name for n in count(len(taken)) if (name := f"k{n}_{label}") not in taken)
        function.sym_name = StringAttr(name)
        self.module.body.block.insert_op_before(function, entries(self.module)[0])
        return name

    def erase_uncalled(self, names: Iterable[str]) -> None:
        """Erase those functions that nothing calls any more."""
        walks = (entry.walk() for entry in entries(self.module))
        called = {op.callee.string_value() for op in chain(*walks) if isinstance(op, func.CallOp)}
        for name in dict.fromkeys(names):
            if name not in called:
                self.module.body.block.erase_op(self.by_name[name])


def call_in_place(op: Operation, name: str, types: Sequence[Attribute], given: Sequence[SSAValue]) -> None:
    """Put a call in front of an operation that it stands for: of what is given, under the types that it takes."""
    block = op.parent
    assert block is not None
    views = [contiguous_view(v, memref_type(t)) if v.type != t else None for v, t in zip(given, types, strict=True)]
    arguments = [v if view is None else view.result for v, view in zip(given, views, strict=True)]
    for new in (*filter(None, views), func.CallOp(name, arguments, [])):
        new.location = op.location
        block.insert_op_before(new, op)


def replace_loops(op: Operation, replaced: Callable[[scf.ForOp], set[str] | None]) -> set[str]:
    """Replace outermost loops in an operation's regions, where `replaced` does; the names of all that it inlined.

    A loop in one that is replaced goes with it; of one that stays (None) those inside are tried.
    """
    inlined: set[str] = set()
    for inner in [inner for region in op.regions for block in region.blocks for inner in block.ops]:
        found = replaced(inner) if isinstance(inner, scf.ForOp) else None
        inlined |= replace_loops(inner, replaced) if found is None else found
    return inlined


def loop_label(loop: scf.ForOp) -> str:
    """What the function of a loop is named after."""
    label = loop.attributes.get(LOOP_LABEL)
    return label.data if isinstance(label, StringAttr) else "loop"
