"""The entry function of a module: where a model starts."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

ENTRY = "main"
"""Its name."""


def find_entry(module: ModuleOp) -> FuncOp | None:
    """The entry function, if the module has one with a body."""
    functions = (op for op in module.ops if isinstance(op, FuncOp))
    return next((f for f in functions if f.sym_name.data == ENTRY and f.body.blocks), None)
