"""Kernels of the `davinci` dialect on the simulator: compiled, run, and their faults told in the kernel's own lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.printer import Printer

from msc.codegen.davinci.emit_cce import CceProgram, emit_cce
from msc.dialects.davinci import BufferType, KernelOp
from msc.driver.passes.registry import new_context
from msc.ir.locations import source_location
from msc.ir.reading import parse_module
from msc.ir.verification import verify_module
from msc.runtime.shared_library import SharedLibrary
from msc.runtime.text_library import text_library
from msc.sim.machine import FUNCTION, RACES, TIME, Fault, GlobalBuffer, Launch, SimulationFault, simulate
from msc.sim.result import SimulationResult
from msc.sim.sources import KERNEL_FLAGS, SIMULATOR_FLAGS, kernel_sources, simulator_sources
from msc.support.diagnostics import Diagnostic, MscError
from msc.support.files import read_source, source_name

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_CODES = ("", "MSC1011", "MSC1012", "MSC1013", "MSC1014", "MSC1015", "MSC1016", "MSC1017")
"""The code of each kind of error of dv_sim.h."""


@dataclass(frozen=True)
class SimulationOptions:
    """What is simulated: `trace_events` bounds the trace, `trace_core` chooses a core (-1: all)."""

    timing: bool = True
    functional: bool = False
    races: bool = False
    warm: bool = True
    trace_events: int = 0
    trace_core: int = -1


@cache
def _simulator() -> SharedLibrary:
    return text_library(simulator_sources(), SIMULATOR_FLAGS, ("-lm",))


def read_kernels(path: str, target: str | None = None) -> list[KernelOp]:
    """The kernels of a `.dv.mir` file, verified; for `target` instead of their own if one is named. Raises MscError."""
    text, name = read_source(Path(path)), source_name(path)
    return parse_kernels(text, name, target)


def parse_kernels(text: str, name: str, target: str | None = None) -> list[KernelOp]:
    """The kernels of a text. Raises MscError, MSC1020 when there is none."""
    from xdsl.dialects.builtin import StringAttr

    module = parse_module(new_context(), text, name)
    kernels = [op for op in module.body.block.ops if isinstance(op, KernelOp)]
    for kernel in kernels:
        if target is not None:
            kernel.target = StringAttr(target)
    verify_module(module, {name: text})
    if not kernels:
        advice = "a kernel is davinci.kernel @name vector 1 (%x: !davinci.buffer<gm, f16, 64>) { ... }"
        raise MscError(Diagnostic("MSC1020", f"'{name}' holds no davinci.kernel", help=advice))
    return kernels


def kernel_module(kernel: KernelOp) -> ModuleOp:
    """A module of one kernel."""
    return ModuleOp([kernel])


def kernel_text(kernel: KernelOp) -> str:
    """A kernel as `.dv.mir` text."""
    out = StringIO()
    Printer(out).print_op(kernel)
    return out.getvalue() + "\n"


def simulate_kernel(
    kernel: KernelOp,
    options: SimulationOptions | None = None,
    data: Sequence[NDArray[np.generic]] = (),
    outputs: Sequence[int] = (),
    sources: Mapping[str, str] | None = None,
) -> SimulationResult:
    """Run a kernel on the simulator; with `functional`, on the arrays `data`, where those of `outputs` start empty.

    Raises MSC1011 to MSC1017 for what a core cannot do, at the operation that did it.
    """
    chosen = options or SimulationOptions()
    program = emit_cce(kernel)
    library = text_library(kernel_sources(program.text), KERNEL_FLAGS)
    mode = TIME * chosen.timing | FUNCTION * chosen.functional | RACES * chosen.races
    launch = Launch(
        kernel.blocks.value.data, kernel.kind.data, mode, chosen.warm, chosen.trace_events, chosen.trace_core
    )
    arguments = _arguments(kernel, data, outputs) if chosen.functional else _arguments(kernel, (), ())
    try:
        return simulate(_simulator(), library, kernel.machine, launch, arguments)
    except SimulationFault as error:
        raise MscError(_told(error.fault, program, sources or {})) from error


def check_kernel(kernel: KernelOp, sources: Mapping[str, str] | None = None) -> None:
    """Raise MSC1015 to MSC1017 unless a kernel is free of deadlock, of unpaired and doubly set flags, and of races."""
    simulate_kernel(kernel, SimulationOptions(timing=False, races=True, warm=False), sources=sources)


def _arguments(kernel: KernelOp, data: Sequence[NDArray[np.generic]], outputs: Sequence[int]) -> list[GlobalBuffer]:
    buffers: list[GlobalBuffer] = []
    for position, argument in enumerate(kernel.body.block.args):
        assert isinstance(argument.type, BufferType)
        array = data[position] if position < len(data) else None
        buffers.append(GlobalBuffer(argument.type.bytes, array, position not in outputs))
    return buffers


def _told(fault: Fault, program: CceProgram, sources: Mapping[str, str]) -> Diagnostic:
    """A fault at its operation, and the other operation of a race in a note."""
    diagnostic = Diagnostic(_CODES[fault.kind], f"{fault.message} (core {fault.core})")
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
