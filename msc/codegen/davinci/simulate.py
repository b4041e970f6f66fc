"""A kernel of the `davinci` dialect on the simulator: compiled and run, its faults told in its own lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from msc.codegen.davinci.emit_cce import emit_cce
from msc.codegen.davinci.race_check import check_kernels, faults_told, global_buffers, simulator
from msc.dialects.davinci import DavinciKernelOp
from msc.ir.verification import verify_operation
from msc.runtime.text_library import text_library
from msc.sim.machine import (
    FUNCTION,
    INSTRUCTION_LIMIT,
    RACES,
    TIME,
    WHOLE_WARM_L2,
    GlobalBuffer,
    L2State,
    Launch,
    simulate,
)
from msc.sim.result import SimulationResult
from msc.sim.sources import KERNEL_FLAGS, kernel_sources

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True)
class SimulationOptions:
    """What is simulated: `trace_events` bounds the trace, `trace_core` chooses a core (-1: all).

    `l2` is what L2 holds at the start; `limit` bounds instructions.
    """

    timing: bool = True
    functional: bool = False
    races: bool = False
    l2: L2State = WHOLE_WARM_L2
    limit: int = INSTRUCTION_LIMIT
    trace_events: int = 0
    trace_core: int = -1


DEFAULTS = SimulationOptions()
"""Timing alone."""


def simulate_kernel(
    kernel: DavinciKernelOp,
    options: SimulationOptions | None = None,
    data: Sequence[NDArray[np.generic]] = (),
    outputs: Sequence[int] = (),
    sources: Mapping[str, str] | None = None,
) -> SimulationResult:
    """Run a kernel on the simulator; with `functional`, on the arrays `data`, where those of `outputs` start empty.

    Raises MSC1011 to MSC1017 for what a core cannot do, at the operation that did it, MSC1030 for a run that takes too
    many instructions, MSC1031 without memory.
    """
    chosen = options or SimulationOptions()
    verify_operation(kernel, sources)
    program = emit_cce(kernel)
    library = text_library(kernel_sources(program.text), KERNEL_FLAGS)
    mode = TIME * chosen.timing | FUNCTION * chosen.functional | RACES * chosen.races
    launch = Launch(
        kernel.blocks.value.data,
        kernel.kind.data,
        mode,
        chosen.l2,
        chosen.limit,
        chosen.trace_events,
        chosen.trace_core,
    )
    arguments = global_buffers(kernel)
    if chosen.functional:
        arguments = [_filled(k, buffer, data, outputs) for k, buffer in enumerate(arguments)]
    with faults_told(program, sources):
        return simulate(simulator(), library, kernel.machine, launch, arguments)


def check_kernel(
    kernel: DavinciKernelOp, sources: Mapping[str, str] | None = None, limit: int = INSTRUCTION_LIMIT
) -> None:
    """Raise MSC1015 to MSC1017 unless a kernel is free of deadlock, of unpaired and doubly set flags, and of races."""
    check_kernels([kernel], sources, limit)


def _filled(
    position: int, buffer: GlobalBuffer, data: Sequence[NDArray[np.generic]], outputs: Sequence[int]
) -> GlobalBuffer:
    array = data[position] if position < len(data) else None
    return replace(buffer, data=array, filled=position not in outputs)
