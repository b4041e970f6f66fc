"""Ascend machines: kernels become queue instructions of DaVinci cores, which a simulator runs.

The host keeps what stands between kernels: views are addresses, control flow is C. Each target is a machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from msc.backends.backend import CBackend, CodeOptions
from msc.backends.stage import PassRun, Stage, kernel_stage, runs

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from msc.backends.ascend_tuning import TunedKernel
    from msc.backends.simulation.running import DavinciSimulator
    from msc.dialects.gk import KernelOp
    from msc.runtime.program import CProgram

# A sum over leading axes runs on one core, elementwise work before it on all: so it stays a kernel of its own.
_POLICY = {"integer_epilogues": False, "prologues": False, "gathers": False, "wide_types": False, "shared_sums": False}
_GK = kernel_stage(
    before_expansion=runs("narrow-products", "narrow-positions"),
    cluster=PassRun("cluster-kernels", _POLICY),
    layouts=runs(
        "expand-quantised",
        "absorb-pads",
        PassRun("assign-layouts", {"few_channels": True}),
        *("pack-filters", "hoist-invariants", "hoist-parameters"),
    ),
)
_DAVINCI = Stage(
    "davinci",
    ".dv.mir",
    "kernels of queue instructions, their meaning as loops, and the host's calls on memrefs",
    "lowering.ascend",
    legal=(
        *("builtin.module", "ms.parameter", "func.func", "func.call", "func.return"),
        *("davinci.*", "loop.*", "arith.*", "math.*", "memref.*"),
        *("scf.if", "scf.for", "scf.while", "scf.yield", "scf.condition"),
    ),
    properties=("Vectors", "Buffers", "Placed"),
    passes=runs(
        *("apply-tuning", "convert-gk-to-davinci"),
        PassRun("convert-gk-to-loop", {"plain": True}),
        "bind-davinci-kernels",
        PassRun("vectorize", {"enable": False}),
        "bufferize",
        PassRun("plan-memory", {"reuse": False}),
    ),
    verifiers=runs("verify-loop-stage", "verify-memory-plan", "verify-bounds", "verify-davinci-kernels"),
)
_C = Stage("c", ".c .h", "C of the host, and of kernels with CCE's intrinsics", "codegen/davinci")
_ARTIFACT = Stage("artifact", ".so .o", "what the system's C compiler builds, with the simulator", "runtime")


class AscendBackend(CBackend):
    """What all Ascend machines share."""

    simulated = True
    stages = (_GK, _DAVINCI, _C, _ARTIFACT)
    forms = tuple(form for form in CBackend.forms if form.name != "bundle")
    default_machine: ClassVar[str]

    def machines(self) -> Sequence[str]:
        return (self.default_machine,)

    def describe(self, machine: str) -> str | None:
        from msc.support.diagnostics import Diagnostic, MscError

        if machine != self.default_machine:
            message = f"the target {self.name} has no machine '{machine}'; it is one"
            raise MscError(Diagnostic("MSC0501", message, help="--target names another machine"))
        return None

    def generate(self, module: ModuleOp, options: CodeOptions) -> CProgram:
        from msc.codegen.davinci.emit_program import emit_program

        return emit_program(module, self.default_machine, options.for_c())

    def on_simulator(self, kernel: KernelOp) -> TunedKernel:
        from msc.backends.ascend_tuning import TunedKernel

        return TunedKernel(kernel)

    def simulator(self) -> DavinciSimulator:
        from msc.backends.simulation.running import DavinciSimulator

        return DavinciSimulator(self.default_machine)


class Ascend310(AscendBackend):
    """Two coupled cores."""

    name = default_machine = "ascend310"
    summary = "Ascend 310, simulated"


class Ascend910A(AscendBackend):
    """32 coupled cores."""

    name = default_machine = "ascend910a"
    summary = "Ascend 910A, simulated"


class Ascend910B1(AscendBackend):
    """24 cube and 48 vector cores."""

    name = default_machine = "ascend910b1"
    summary = "Ascend 910B1, simulated"


class Ascend910B3(AscendBackend):
    """20 cube and 40 vector cores."""

    name = default_machine = "ascend910b3"
    summary = "Ascend 910B3, simulated"


class Ascend950PR(AscendBackend):
    """32 cube and 64 vector cores."""

    name = default_machine = "ascend950pr"
    summary = "Ascend 950PR, simulated"
