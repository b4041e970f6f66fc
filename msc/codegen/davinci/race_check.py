"""The proof of generated kernels: one run of each, or two, on the simulator that follows flags alone."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from xdsl.ir import Operation

from msc.codegen.davinci.emit_cce import CceProgram, emit_cce_kernels
from msc.dialects.davinci import BufferType, DavinciKernelOp, LoadIndexOp
from msc.ir.locations import source_location
from msc.runtime.shared_library import SharedLibrary
from msc.runtime.text_library import text_library
from msc.sim.machine import GREATEST, RACES, Fault, GlobalBuffer, Launch, SimulationFault, simulate
from msc.sim.sources import CHECK_FLAGS, SIMULATOR_FLAGS, kernel_sources, simulator_sources
from msc.support.diagnostics import Diagnostic, MscError

FAULT_CODES = ("", "MSC1011", "MSC1012", "MSC1013", "MSC1014", "MSC1015", "MSC1016", "MSC1017")
"""The code of each kind of error of dv_sim.h."""


@cache
def simulator() -> SharedLibrary:
    """The simulator's library, built once."""
    return text_library(simulator_sources(), SIMULATOR_FLAGS, ("-lm",))


@dataclass(frozen=True)
class _Entry:
    """One kernel of a library that holds several."""

    library: SharedLibrary
    name: str

    def function(self, name: str, result: type | None = ctypes.c_int) -> Callable[..., int]:
        """An exported function; `kernel` is the one that this is of."""
        return self.library.function(self.name if name == "kernel" else name, result)


def check_kernels(kernels: Sequence[DavinciKernelOp], sources: Mapping[str, str] | None = None) -> None:
    """Raise MSC1011 to MSC1017 unless kernels stay in bounds, and are free of deadlock and of races."""
    if not kernels:
        return
    program = emit_cce_kernels(kernels)
    library = text_library(kernel_sources(program.text), CHECK_FLAGS)
    for number, kernel in enumerate(kernels):
        sizes = [a.type.bytes for a in kernel.body.block.args if isinstance(a.type, BufferType)]
        arguments = [GlobalBuffer(size) for size in sizes]
        for mode in _modes(kernel):
            launch = Launch(kernel.blocks.value.data, kernel.kind.data, mode, warm=False)
            try:
                simulate(simulator(), _Entry(library, f"kernel_{number}"), kernel.machine, launch, arguments)
            except SimulationFault as error:
                raise MscError(fault_diagnostic(error.fault, program, sources or {})) from error


def _modes(kernel: DavinciKernelOp) -> tuple[int, ...]:
    """One run, and another with the greatest indices where some are loaded: addresses lie between those of the two."""
    return (RACES, RACES | GREATEST) if any(isinstance(op, LoadIndexOp) for op in kernel.walk()) else (RACES,)


def fault_diagnostic(fault: Fault, program: CceProgram, sources: Mapping[str, str]) -> Diagnostic:
    """A fault at its operation, and the other operation of a race in a note."""
    diagnostic = Diagnostic(FAULT_CODES[fault.kind], f"{fault.message} (core {fault.core})")
    op = program.operations.get(fault.line)
    if op is not None:
        diagnostic = _placed(diagnostic, op, sources)
    other = program.operations.get(fault.other_line)
    if other is not None:
        place = source_location(other)
        diagnostic = replace(diagnostic, notes=(f"the other one is {other.name}" + (f" at {place}" if place else ""),))
    return diagnostic


def _placed(diagnostic: Diagnostic, op: Operation, sources: Mapping[str, str]) -> Diagnostic:
    place = source_location(op)
    if place is None:
        return replace(diagnostic, notes=(f"the operation is {op.name}",))
    lines = sources.get(place.file, "").splitlines()
    line = lines[place.line - 1] if 0 < place.line <= len(lines) else None
    return replace(diagnostic, location=place, source_line=line)
