"""The walk from model to artifact as data: the compiler's table of contents. The file extension is the stage."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Stage:
    """One stage: `extension` names its files, `legal` says what may stand in it, `made_by` what makes it."""

    name: str
    extension: str
    legal: str
    made_by: str


STAGES: tuple[Stage, ...] = (
    Stage("graph", ".mir", "ms ops on tensors, func, scf", "frontend, importers, by hand"),
    Stage("opt", ".opt.mir", "the same", "graph passes"),
    Stage("gk", ".gk.mir", "gk.kernel regions of basic ms ops, and the dataflow between them", "graph_kernel"),
    Stage("loop", ".loop.mir", "scheduled loop nests on memrefs, vector, arith, math", "schedule, lowering"),
    Stage("c", ".c .h", "C11, with libc, libm and optionally OpenMP", "codegen/c"),
    Stage("davinci", ".dv.mir .dv.c", "queue instructions on GM, L1, L0A, L0B, L0C, UB", "lowering, codegen/davinci"),
    Stage("artifact", ".so .o", "what the system's C compiler builds", "runtime"),
)
"""In the order in which a model goes through them."""
