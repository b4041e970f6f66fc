"""Kernels of the `davinci` dialect on the simulator: compiled, run, and their faults told in the kernel's own lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import ModuleOp
from xdsl.printer import Printer

from msc.codegen.davinci.emit_cce import emit_cce
from msc.codegen.davinci.race_check import check_kernels, fault_diagnostic, simulator
from msc.dialects.davinci import BufferType, KernelOp
from msc.driver.passes.registry import new_context
from msc.ir.reading import parse_module
from msc.ir.verification import verify_module
from msc.runtime.text_library import text_library
from msc.sim.machine import FUNCTION, RACES, TIME, GlobalBuffer, Launch, SimulationFault, simulate
from msc.sim.result import SimulationResult
from msc.sim.sources import KERNEL_FLAGS, kernel_sources
from msc.support.diagnostics import Diagnostic, MscError
from msc.support.files import read_source, source_name

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True)
class SimulationOptions:
    """What is simulated: `trace_events` bounds the trace, `trace_core` chooses a core (-1: all)."""

    timing: bool = True
    functional: bool = False
    races: bool = False
    warm: bool = True
    trace_events: int = 0
    trace_core: int = -1


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
        return simulate(simulator(), library, kernel.machine, launch, arguments)
    except SimulationFault as error:
        raise MscError(fault_diagnostic(error.fault, program, sources or {})) from error


def check_kernel(kernel: KernelOp, sources: Mapping[str, str] | None = None) -> None:
    """Raise MSC1015 to MSC1017 unless a kernel is free of deadlock, of unpaired and doubly set flags, and of races."""
    check_kernels([kernel], sources)


def arguments_of(kernel: KernelOp) -> list[NDArray[np.generic]]:
    """Arrays for a kernel's arguments, filled with the same numbers every time."""
    import ml_dtypes
    import numpy as np

    made: list[NDArray[np.generic]] = []
    random = np.random.default_rng(0)
    for argument in kernel.body.block.args:
        assert isinstance(argument.type, BufferType)
        names = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "i8": np.int8, "ui8": np.uint8}
        names |= {"i16": np.int16, "i32": np.int32, "ui32": np.uint32}
        numbers = random.integers(0, 4, argument.type.elements.data)
        made.append(numbers.astype(names[argument.type.dtype]))
    return made


def _arguments(kernel: KernelOp, data: Sequence[NDArray[np.generic]], outputs: Sequence[int]) -> list[GlobalBuffer]:
    buffers: list[GlobalBuffer] = []
    for position, argument in enumerate(kernel.body.block.args):
        assert isinstance(argument.type, BufferType)
        array = data[position] if position < len(data) else None
        buffers.append(GlobalBuffer(argument.type.bytes, array, position not in outputs))
    return buffers
