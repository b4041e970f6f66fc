"""The error of a lowering pass that rejects a program: MSC0404 at the operation."""

from __future__ import annotations

from xdsl.ir import Operation

from msc.ir.locations import source_location
from msc.support.diagnostics import Diagnostic, MscError


def refuse(pass_name: str, op: Operation, reason: str) -> MscError:
    """The error to raise when a pass cannot be applied to `op`."""
    return MscError(Diagnostic("MSC0404", f"{pass_name}: {reason}", source_location(op)))
