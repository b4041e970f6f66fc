"""The entry function of a module."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from msc.support.diagnostics import Diagnostic, MscError


def entry_function(module: ModuleOp) -> FuncOp:
    """@main. Raises MSC0605 when there is none."""
    for op in module.ops:
        if isinstance(op, FuncOp) and op.sym_name.data == "main" and op.body.blocks:
            return op
    raise MscError(Diagnostic("MSC0605", "the module has no function @main, where a model starts"))
