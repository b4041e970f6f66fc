"""CPUs: kernels become scheduled loops, vectors, buffers and readable C."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msc.backends.backend import CBackend, CodeOptions, Switch
from msc.backends.stage import Stage, kernel_stage, runs
from msc.support.diagnostics import Diagnostic, MscError

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from msc.runtime.program import CProgram

_GK = kernel_stage(
    before_expansion=runs(
        *("block-attention-gradients", "block-attention", "convolutions-as-products", "split-taps", "argsort-by-keys"),
        *("scan-rows", "collectives-as-calls"),
    ),
    functions=("gk.call",),
    layouts=runs(
        *(
            "rematerialize",
            "winograd",
            "fuse-pads",
            "assign-layouts",
            "read-transposed",
            "store-states",
            "pack-operands",
            "hoist-invariants",
            "hoist-parameters",
        ),
        *("compute-at-consumers", "fit-memory", "order-kernels", "hoist-slices"),
    ),
)
_LOOP = Stage(
    "loop",
    ".loop.mir",
    "scheduled loop nests on memrefs, vector, arith, math",
    "schedule, lowering",
    legal=(
        *("builtin.module", "ms.parameter", "func.func", "func.call", "func.return"),
        *("loop.*", "arith.*", "math.*", "vector.*", "memref.*"),
        *("scf.if", "scf.for", "scf.while", "scf.yield", "scf.condition"),
    ),
    properties=("Vectors", "Buffers"),
    passes=runs(
        *("apply-tuning", "schedule-kernels", "convert-gk-to-loop", "vectorize"),
        *("bufferize", "outline-loops", "outline-recurrences", "plan-memory", "compact-open-tensors"),
    ),
    verifiers=runs("verify-loop-stage", "verify-memory-plan", "verify-bounds", "verify-parallel"),
)
_C = Stage("c", ".c .h", "C11, with libc, libm and optionally threads", "codegen/c")
_ARTIFACT = Stage("artifact", ".so .o", "what the system's C compiler builds", "runtime")


class CpuBackend(CBackend):
    """x86-64 and AArch64, through C with vector types."""

    name = "cpu"
    summary = "CPUs, through readable C"
    stages = (_GK, _LOOP, _C, _ARTIFACT)
    default_machine = "native"
    switches = (
        Switch("block-attention", "attention by blocks of queries and keys"),
        Switch("block-attention-gradients", "gradients of attention by blocks of queries"),
        Switch("compute-at-consumers", "producers computed at a loop of their consumer, in one kernel"),
        Switch("assign-layouts", "blocked layouts between kernels"),
        Switch("outline-loops", "loops of independent iterations as one function"),
        Switch("order-kernels", "kernels in the order in which the fewest bytes are live"),
        Switch("pack-operands", "operands of products packed for their tiles"),
        Switch("convolutions-as-products", "convolutions of small images as products of patches"),
        Switch("fuse-pads", "padding fused into the kernel before it"),
        Switch("prefetches", "prefetches of data beyond the caches", "schedule-kernels", {"prefetches": False}),
        Switch(
            "reduction-blocks",
            "K-blocking of reductions whose operands exceed L2",
            "schedule-kernels",
            {"blocks": False},
        ),
        Switch("outline-recurrences", "loops that carry states as one function"),
        Switch("rematerialize", "cheap values recomputed at their readers"),
        Switch("reuse", "buffers in the memory of dead ones, results in place", "plan-memory", {"reuse": False}),
        Switch("scan-rows", "cumulated sums row by row"),
        Switch("schedules", "shared loops, tiles, vectors and threads", "schedule-kernels", {"plain": True}),
        Switch("argsort-by-keys", "sorting and the largest elements by functions that sort"),
        Switch("store-states", "weights under training in the order in which products read them"),
        Switch("sums", "long sums of f32 as sums of partial sums", "schedule-kernels", {"sums": False}),
        Switch("split-taps", "convolutions as sums of parts, where many taps read padding"),
        Switch("units", "instructions that sum several products", "schedule-kernels", {"units": False}),
        Switch("vectors", "vector instructions", "vectorize", {"enable": False}),
        Switch("winograd", "convolutions by Winograd transforms"),
    )

    def machines(self) -> Sequence[str]:
        from msc.targets.catalogue import machine_names

        return machine_names()

    def describe(self, machine: str) -> str | None:
        from msc.targets.catalogue import NATIVE, machine_named
        from msc.targets.files import is_file

        found = machine_named(machine)
        if machine != NATIVE and not is_file(machine):
            return None
        from msc.schedule.tuning.tuned_schedules import target_text

        return target_text(found)

    def check_threads(self, machine: str, threads: int) -> None:
        from msc.targets.catalogue import machine_named

        if threads != 1 and machine_named(machine).is_bare:
            message = f"{machine} has no operating system, so no threads share a kernel there"
            raise MscError(Diagnostic("MSC0534", message, help="leave --threads out"))

    def generate(self, module: ModuleOp, options: CodeOptions) -> CProgram:
        from msc.analysis.target import target_of
        from msc.codegen.c import emit_c

        return emit_c(module, options.for_c(target_of(module)))
