"""Collectives of one rank, which are nothing. Those of several are calls of MPI (`collectives-as-calls`)."""

from __future__ import annotations

from xdsl.ir import SSAValue

from msc.dialects.ms.collectives import COLLECTIVES, CollectiveOp
from msc.graph.emitter import Emitter
from msc.graph.expand.expanders.registry import expander
from msc.ir.locations import source_location
from msc.support.diagnostics import Diagnostic, MscError


@expander(*COLLECTIVES)
def _collective(op: CollectiveOp, emit: Emitter) -> SSAValue:
    if op.group_size == 1:
        return op.x
    message = f"{op.name} joins {op.group_size} ranks, which this target does not have"
    raise MscError(Diagnostic("MSC1103", message, source_location(op), help="compile it for the CPU: --target cpu"))
