"""A kernel of the `davinci` dialect on the simulator: compiled and run, its faults told in its own lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from msc.codegen.davinci.emit_cce import emit_cce
from msc.codegen.davinci.race_check import check_kernels, fault_diagnostic, simulator
from msc.dialects.davinci import BufferType, DavinciKernelOp
from msc.runtime.text_library import text_library
from msc.sim.machine import FUNCTION, RACES, TIME, GlobalBuffer, Launch, SimulationFault, simulate
from msc.sim.result import SimulationResult
from msc.sim.sources import KERNEL_FLAGS, kernel_sources
from msc.support.diagnostics import MscError

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


def simulate_kernel(
    kernel: DavinciKernelOp,
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


def check_kernel(kernel: DavinciKernelOp, sources: Mapping[str, str] | None = None) -> None:
    """Raise MSC1015 to MSC1017 unless a kernel is free of deadlock, of unpaired and doubly set flags, and of races."""
    check_kernels([kernel], sources)


def _arguments(
    kernel: DavinciKernelOp, data: Sequence[NDArray[np.generic]], outputs: Sequence[int]
) -> list[GlobalBuffer]:
    buffers: list[GlobalBuffer] = []
    for position, argument in enumerate(kernel.body.block.args):
        assert isinstance(argument.type, BufferType)
        array = data[position] if position < len(data) else None
        buffers.append(GlobalBuffer(argument.type.bytes, array, position not in outputs))
    return buffers
