"""The entry functions of a module: where a model starts."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.traits import OpTrait

ENTRY = "main"
"""The name of the entry function of a model that has one."""

STRUCTURE = "ms.structure"
"""The attribute of an entry function that says how its results are nested, as JSON (`msc.runtime.structures`)."""

PUBLIC = "public"
"""The visibility of entry functions that have names of their own: `func.func public @step(...)`."""


class RunsOnOtherCores(OpTrait):
    """Of an operation at the top of a module: cores beside the processor run it, in the place of a function of loops.

    Its dialect has the rules for it.
    """


def entries(module: ModuleOp) -> tuple[FuncOp, ...]:
    """The functions that callers of the compiled model may call: @main and all that are public, in their order.

    All others are there to be called by these.
    """
    return tuple(op for op in module.ops if isinstance(op, FuncOp) and op.body.blocks and is_entry(op))


def is_entry(function: FuncOp) -> bool:
    """Whether a function is an entry, by its name and its visibility."""
    visibility = function.sym_visibility
    return function.sym_name.data == ENTRY or (visibility is not None and visibility.data == PUBLIC)


def entry_name(module: ModuleOp) -> str:
    """The name of the entry function that is meant where none is named; @main where there is none."""
    entry = find_entry(module)
    return ENTRY if entry is None else entry.sym_name.data


def find_entry(module: ModuleOp) -> FuncOp | None:
    """The entry function that is meant where none is named: @main, or else the first; None if there is none."""
    found = entries(module)
    return next((f for f in found if f.sym_name.data == ENTRY), next(iter(found), None))
