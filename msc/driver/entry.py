"""The entry function of a module."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from msc.ir.entry import find_entry
from msc.support.diagnostics import Diagnostic, MscError


def entry_function(module: ModuleOp) -> FuncOp:
    """@main. Raises MSC0605 when there is none."""
    entry = find_entry(module)
    if entry is None:
        raise MscError(Diagnostic("MSC0605", "the module has no function @main, where a model starts"))
    return entry
