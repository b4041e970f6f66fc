"""The entry functions of a module."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from msc.ir.entry import entries, find_entry
from msc.support.diagnostics import Diagnostic, MscError


def entry_function(module: ModuleOp, name: str | None = None) -> FuncOp:
    """The entry function of a name, or @main, or the first. Raises MSC0605 when there is none."""
    named = (function for function in entries(module) if function.sym_name.data == name)
    entry = next(named, None) if name is not None else find_entry(module)
    if entry is None:
        message = f"the module has no function @{name or 'main'}, where a model starts"
        raise MscError(Diagnostic("MSC0605", message, help="other entry functions are `func.func public @name`"))
    return entry
