"""A model for DaVinci cores as one C program: the host's entry function, and kernels that the simulated cores run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from xdsl.dialects.builtin import ModuleOp, SymbolRefAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from msc.codegen.c import Accelerator, COptions, emit_c
from msc.codegen.c.kernels import Kernel
from msc.codegen.davinci.emit_cce import cores_text, emit_cce_function
from msc.dialects.davinci import DavinciKernelOp
from msc.dialects.davinci.attributes import DAVINCI_KERNEL
from msc.dialects.davinci.kernels import scalar_cycles
from msc.runtime.program import CProgram, LinkedCode
from msc.sim.headers import curve_values, memory_values, parameter_values, rate_values
from msc.sim.machine import core_kinds
from msc.sim.sources import SIMULATOR_FLAGS, kernel_headers, launch_header, simulator_sources
from msc.support.escaping import c_comment
from msc.targets.davinci import DavinciTarget, davinci_target

MACHINE_HEADER = "dv_machine.h"


def emit_program(module: ModuleOp, machine: str, options: COptions) -> CProgram:
    """The C program of a module at the `davinci` stage. Its results are the simulated cores'.

    A build with clocks times kernels by the machine's cycles. Raises MSC0905 for IR that has no C form.
    """
    kernels = {op.sym_name.data: op for op in module.body.block.ops if isinstance(op, DavinciKernelOp)}
    return emit_c(module, options, lambda timed: _accelerator(davinci_target(machine), kernels, timed))


def _accelerator(target: DavinciTarget, kernels: Mapping[str, DavinciKernelOp], timed: bool) -> Accelerator:
    opening = [
        f"#define DV_TIMED {int(timed)} /* whether launches count cycles */\n",
        "#define DV_ATTACH static\n",
        '#include "cce.h"\n#include "dv_launch.h"\n#include "dv_machine.h"\n\n',
        "static double dv_seconds; /* on the machine, since the start */\n",
    ]

    def launching(function: FuncOp, kernel: Kernel) -> Kernel:
        program = kernels.get(launched(function) or "")
        return kernel if program is None else _launching(kernel, program, target)

    return Accelerator(
        opening="".join(opening),
        kernel=launching,
        clock="    return dv_seconds;\n",
        companions={**kernel_headers(), "dv_launch.h": launch_header(), MACHINE_HEADER: _machine_header(target)},
        linked=LinkedCode(simulator_sources(), SIMULATOR_FLAGS),
    )


def launched(function: Operation) -> str | None:
    """The name of the kernel that a function stands for."""
    found = function.attributes.get(DAVINCI_KERNEL)
    return found.string_value() if isinstance(found, SymbolRefAttr) else None


def _launching(kernel: Kernel, program: DavinciKernelOp, target: DavinciTarget) -> Kernel:
    """What launches a kernel on cores; or the loops themselves where scalar units run them."""
    cycles = scalar_cycles(program)
    if cycles is not None:
        cores = program.blocks.value.data
        who = "The scalar unit of one core runs" if cores == 1 else f"The scalar units of {cores} cores share"
        note = f"{c_comment(f'{who} these loops, in {cycles} cycles.')}\n"
        seconds = f"    dv_seconds += {cycles} / {target.clock.mhz * 1e6!r};\n"
        return replace(kernel, opening=note + kernel.opening, body=kernel.body + seconds)
    name, blocks = f"{kernel.name}_core", program.blocks.value.data
    kinds = core_kinds(target, blocks, program.kind.data)
    count = len(program.body.block.args)
    numbers = ", ".join(str(n) for kind in kinds for n in kind)
    buffers = ", ".join(f"{{{p.name}, {p.buffer.bytes}}}" for p in kernel.parameters[:count])
    unused = "".join(f"    (void){name};\n" for name in (*(p.name for p in kernel.parameters[count:]), *kernel.sizes))
    body = (
        f"{unused}    static const int64_t kinds[] = {{{numbers}}};\n"
        f'    static const struct dv_kernel kernel = {{"{kernel.name}", {name}, dv_attach, '
        f"{len(kinds)}, {blocks}, kinds}};\n"
        f"    const struct dv_buffer buffers[] = {{{buffers}}};\n"
        f"    dv_seconds += dv_launch(&dv_machine, &kernel, buffers, {count}, DV_TIMED);\n"
    )
    opening = f"{kernel.opening}{c_comment(f'On {cores_text(program)}.')}\n{emit_cce_function(program, name)}\n"
    return replace(kernel, opening=opening, body=body)


def _machine_header(target: DavinciTarget) -> str:
    """The numbers of a machine as C."""
    capacity, align = memory_values(target)
    tables: Sequence[tuple[str, str, Iterable[float | int]]] = (
        ("double", "parameters", parameter_values(target).values()),
        ("double", "rates", rate_values(target)),
        ("double", "curves", curve_values(target.cold)),
        ("int64_t", "capacity", capacity),
        ("int64_t", "align", align),
    )
    lines = [c_comment(f"{target.name}, made by msc of its machine file.")]
    for type_, name, numbers in tables:
        lines.append(f"static const {type_} dv_{name}[] = {{{', '.join(map(repr, numbers))}}};")
    fields = ", ".join(f"dv_{name}" for _, name, _ in tables)
    lines.append(f"static const struct dv_machine dv_machine = {{{fields}, {target.clock.mhz * 1e6!r}}};")
    return "\n".join(lines) + "\n"
