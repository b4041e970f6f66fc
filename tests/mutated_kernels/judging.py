"""Kernels that msc makes, what they compute, and whether a mutant of one is refused, harmless, or wrongly accepted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from msc.backends.simulation.case_files import library_schedule
from msc.backends.simulation.kernels import arguments_of, kernel_text, parse_kernels, read_kernels
from msc.codegen.davinci.emit_cce import emit_cce
from msc.codegen.davinci.race_check import faults_told, global_buffers, simulator
from msc.codegen.davinci.simulate import check_kernel
from msc.dialects.davinci import DavinciKernelOp
from msc.lowering.ascend.fused_matmul import fused_matmul_kernel
from msc.lowering.ascend.matmul import matmul_kernel
from msc.lowering.ascend.vector import vector_kernel, vector_schedule
from msc.runtime.text_library import text_library
from msc.schedule.cube.products import MatmulShape
from msc.sim.machine import FUNCTION, TIME, Launch, simulate
from msc.sim.sources import CHECK_FLAGS, kernel_sources
from msc.support.diagnostics import MscError
from msc.targets.davinci import DavinciTarget, davinci_target
from tests.mutated_kernels.mutations import REFUSED, SAME, Mutant

SAMPLES = Path(__file__).parents[2] / "samples" / "davinci"
B1, PR = davinci_target("ascend910b1"), davinci_target("ascend950pr")
LIMIT = 1 << 20

Arrays = list[NDArray[np.generic]]


def kernels() -> Mapping[str, DavinciKernelOp]:
    """What is mutated: vector and cube kernels, and those of both, on two machines."""
    made: dict[str, DavinciKernelOp] = {}
    for name in ("add", "matmul"):
        [made[f"{name} by hand"]] = read_kernels(str(SAMPLES / f"{name}.dv.mir"))
    for operation, more in (("add", {}), ("gelu", {"double_buffer": False})):
        schedule = vector_schedule(operation, 4000, "f16", B1, {"cores": 2, "elements": 512, **more})
        made[operation] = vector_kernel(operation, 4000, "f16", schedule, B1)
    shape = MatmulShape(128, 128, 128, transpose_b=True)
    for name, wishes in (
        ("packets", dict[str, Any](cores=2, base=(64, 64, 32), depth_a1=8, depth_b1=4, unit_flag=True)),
        ("plain", dict[str, Any](cores=1, base=(64, 64, 64), big_packets=False)),
    ):
        made[f"product, {name}"] = matmul_kernel(shape, library_schedule(shape, B1, **wishes), B1)
    for machine, via in ((B1, "gm"), (PR, "ub")):
        schedule = library_schedule(shape, machine, cores=2, base=(64, 64, 64))
        made[f"product with gelu, {via}"] = fused_matmul_kernel(shape, schedule, machine, "gelu", via)
    return made


def texts() -> dict[str, str]:
    """The kernels as text."""
    return {name: kernel_text(kernel) for name, kernel in kernels().items()}


def machines(machine: DavinciTarget) -> Iterator[tuple[int, DavinciTarget]]:
    """Ways to run a kernel that come to other orders where flags do not give one: modes, and other speeds."""
    gm, vector, cube = machine.gm, machine.vector, machine.cube
    yield FUNCTION, machine
    yield FUNCTION | TIME, machine
    slow = replace(gm, l1_start=900.0, ub_start=900.0, write_start=7.0)
    yield FUNCTION | TIME, replace(machine, gm=slow)
    yield FUNCTION | TIME, replace(machine, vector=replace(vector, start=5000.0), cube=replace(cube, latency=5000.0))


def run(kernel: DavinciKernelOp, given: Arrays) -> Iterator[Arrays]:
    """The arguments after each way to run it. Raises MscError."""
    program = emit_cce(kernel)
    library = text_library(kernel_sources(program.text), CHECK_FLAGS)
    for mode, machine in machines(kernel.machine):
        arrays = [array.copy() for array in given]
        buffers = [replace(b, data=array) for b, array in zip(global_buffers(kernel), arrays, strict=True)]
        launch = Launch(kernel.blocks.value.data, kernel.kind.data, mode, limit=LIMIT)
        with faults_told(program, None):
            simulate(simulator(), library, machine, launch, buffers)
        yield arrays


def equal(left: Arrays, right: Arrays) -> bool:
    """Bit by bit."""
    return all(a.tobytes() == b.tobytes() for a, b in zip(left, right, strict=True))


@dataclass
class Original:
    """A kernel and what it computes."""

    text: str

    def __post_init__(self) -> None:
        [kernel] = parse_kernels(self.text, "k.dv.mir")
        check_kernel(kernel)
        self.given: Arrays = arguments_of(kernel)
        first, *others = run(kernel, self.given)
        assert all(equal(first, other) for other in others)
        self.expected = first

    def fault(self, mutant: Mutant) -> str | None:
        """Why a mutant should not have been accepted; None where it was refused, or where it does no harm."""
        try:
            [kernel] = parse_kernels(mutant.text, "k.dv.mir")
            check_kernel(kernel, limit=LIMIT)
            found = list(run(kernel, self.given))
        except MscError as error:
            internal = [d.code for d in error.diagnostics if d.code.startswith("MSC09")]
            return f"refused by {internal[0]}" if internal else None
        if mutant.allowed == REFUSED:
            return "accepted"
        if not all(equal(found[0], other) for other in found[1:]):
            return "accepted, and what it computes depends on time"
        if mutant.allowed == SAME and not equal(found[0], self.expected):
            return "accepted, and computes something else"
        return None
