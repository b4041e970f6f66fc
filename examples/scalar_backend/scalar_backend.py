"""A back end for msc that another package brings: plain scalar C, for a processor of which nothing is known.

It fuses as msc does and keeps every tensor as the model has it: no Winograd transform, no layout, no packing. A kernel
becomes loops in program order, without tiles, vectors and threads. Sorting is by functions that sort: comparing all
pairs of many elements takes more memory than there is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from msc.backends.backend import CBackend, CodeOptions
from msc.backends.stage import PassRun, Stage, kernel_stage, runs

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from msc.runtime.program import CProgram

MACHINE = "generic"
"""The only machine: a C compiler may use what every processor of its architecture has."""

LOOPS = Stage(
    "loop",
    ".loop.mir",
    "loops over scalars and buffers",
    "scalar_backend",
    legal=(
        *("builtin.module", "ms.parameter", "func.func", "func.call", "func.return"),
        *("loop.*", "arith.*", "math.*", "memref.*"),
        *("scf.if", "scf.for", "scf.while", "scf.yield", "scf.condition"),
    ),
    properties=("Vectors", "Buffers", "Placed"),
    passes=runs(
        PassRun("schedule-kernels", {"plain": True}),
        "convert-gk-to-loop",
        PassRun("vectorize", {"enable": False}),
        "bufferize",
        "plan-memory",
    ),
    verifiers=runs("verify-loop-stage", "verify-memory-plan", "verify-bounds"),
)
"""`vector.*` is not legal here, so a pass that makes vectors would be found out."""


@dataclass(frozen=True)
class ScalarBackend(CBackend):
    """`msc compile MODEL --target scalar`."""

    name = "scalar"
    summary = "plain scalar C"
    stages = (
        kernel_stage(before_expansion=runs("argsort-by-keys"), functions=("gk.call",)),
        LOOPS,
        Stage("c", ".c .h", "C11 without vectors and threads", "msc.codegen.c"),
        Stage("artifact", ".so .o", "what the system's C compiler builds", "msc.runtime"),
    )
    default_machine = MACHINE

    def machines(self) -> Sequence[str]:
        """The names that `--march` takes."""
        return (MACHINE,)

    def describe(self, machine: str) -> str | None:
        """Nothing more than the name says. Raises MSC0501 for another machine."""
        from msc.support.diagnostics import Diagnostic, MscError

        if machine != MACHINE:
            raise MscError(Diagnostic("MSC0501", f"the target scalar has no machine '{machine}'; it has {MACHINE}"))

    def generate(self, module: ModuleOp, options: CodeOptions) -> CProgram:
        """C text, with a signature by which `msc.runtime` builds, loads and calls it."""
        from msc.codegen.c import emit_c

        return emit_c(module, options.for_c())
