"""The proof of generated kernels: one run of each, or two, on the simulator that follows flags alone."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache

from xdsl.ir import Operation

from msc.codegen.davinci.emit_cce import CceProgram, emit_cce_kernels
from msc.dialects.davinci import BufferType, DavinciKernelOp, LoadIndexOp, QueueOp
from msc.ir.locations import source_location
from msc.ir.verification import verify_operation
from msc.runtime.shared_library import SharedLibrary
from msc.runtime.text_library import text_library
from msc.sim.machine import (
    GREATEST,
    INSTRUCTION_LIMIT,
    RACES,
    Fault,
    GlobalBuffer,
    Launch,
    SimulationFault,
    SimulatorMemoryError,
    simulate,
)
from msc.sim.sources import CHECK_FLAGS, SIMULATOR_FLAGS, kernel_sources, simulator_sources
from msc.support.diagnostics import Diagnostic, MscError

FAULT_CODES = (
    "", "MSC1011", "MSC1012", "MSC1013", "MSC1014", "MSC1015", "MSC1016", "MSC1017", "MSC1030", "MSC1031",
)  # fmt: skip
"""The code of each kind of error of dv_sim.h."""

_DEADLOCK = FAULT_CODES.index("MSC1015")


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


def check_kernels(
    kernels: Sequence[DavinciKernelOp], sources: Mapping[str, str] | None = None, limit: int = INSTRUCTION_LIMIT
) -> None:
    """Raise MSC1011 to MSC1017 unless kernels stay in bounds, and are free of deadlock and of races.

    Raises MSC1030 for one that takes too many instructions, MSC1031 without memory.
    """
    if not kernels:
        return
    for kernel in kernels:
        verify_operation(kernel, sources)
    program = emit_cce_kernels(kernels)
    library = text_library(kernel_sources(program.text), CHECK_FLAGS)
    for number, kernel in enumerate(kernels):
        arguments = global_buffers(kernel)
        for mode in _modes(kernel):
            launch = Launch(kernel.blocks.value.data, kernel.kind.data, mode, limit=limit)
            with faults_told(program, sources):
                simulate(simulator(), _Entry(library, f"kernel_{number}"), kernel.machine, launch, arguments)


def global_buffers(kernel: DavinciKernelOp) -> list[GlobalBuffer]:
    """The arguments of a kernel without data."""
    written = {op.buffers[0] for op in kernel.walk() if isinstance(op, QueueOp) and op.buffers}
    return [
        GlobalBuffer(argument.type.bytes, written=argument in written)
        for argument in kernel.body.block.args
        if isinstance(argument.type, BufferType)
    ]


def _modes(kernel: DavinciKernelOp) -> tuple[int, ...]:
    """One run, and another with the greatest indices where some are loaded: addresses lie between those of the two."""
    return (RACES, RACES | GREATEST) if any(isinstance(op, LoadIndexOp) for op in kernel.walk()) else (RACES,)


@contextmanager
def faults_told(program: CceProgram, sources: Mapping[str, str] | None) -> Generator[None]:
    """Raise MscError with what a run on the simulator raises, at the operations of the kernel."""
    try:
        yield
    except SimulationFault as error:
        raise MscError(*fault_diagnostics(error.faults, program, sources or {})) from error
    except SimulatorMemoryError as error:
        raise MscError(Diagnostic("MSC1031", f"there is no memory {error}", help=_SMALLER)) from error


_SMALLER = "make the kernel's arguments smaller"
_LIMITED = "--limit N, of msc sim, sets another limit; shorten the loops if they were not meant"


def fault_diagnostics(
    faults: Sequence[Fault], program: CceProgram, sources: Mapping[str, str]
) -> tuple[Diagnostic, ...]:
    """Each fault at its operation; the queues of a deadlock in one."""
    made = [_fault_diagnostic(fault, program, sources) for fault in faults if fault.kind != _DEADLOCK]
    blocked = [fault for fault in faults if fault.kind == _DEADLOCK]
    if blocked:
        first = replace(blocked[0], other_line=0, message=f"deadlock: {blocked[0].message}")
        others = tuple(_blocked_text(fault, program) for fault in blocked[1:])
        made.append(replace(_fault_diagnostic(first, program, sources), notes=others))
    return tuple(made)


def _fault_diagnostic(fault: Fault, program: CceProgram, sources: Mapping[str, str]) -> Diagnostic:
    code = FAULT_CODES[fault.kind]
    diagnostic = Diagnostic(code, f"{fault.message} ({_cores(fault)})", help=_LIMITED if code == "MSC1030" else None)
    op = program.operations.get(fault.line)
    if op is not None:
        diagnostic = _placed(diagnostic, op, sources)
    other = program.operations.get(fault.other_line)
    if other is not None:
        place = source_location(other)
        diagnostic = replace(diagnostic, notes=(f"the other one is {other.name}" + (f" at {place}" if place else ""),))
    return diagnostic


def _blocked_text(fault: Fault, program: CceProgram) -> str:
    op = program.operations.get(fault.line)
    place = None if op is None else source_location(op)
    return f"{fault.message} ({_cores(fault)})" + (f" at {place}" if place else "")


def _cores(fault: Fault) -> str:
    return f"core {fault.core}" + (f" and {fault.cores - 1} more" if fault.cores > 1 else "")


def _placed(diagnostic: Diagnostic, op: Operation, sources: Mapping[str, str]) -> Diagnostic:
    place = source_location(op)
    if place is None:
        return replace(diagnostic, notes=(f"the operation is {op.name}",))
    lines = sources.get(place.file, "").splitlines()
    line = lines[place.line - 1] if 0 < place.line <= len(lines) else None
    return replace(diagnostic, location=place, source_line=line)
