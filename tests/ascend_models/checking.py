"""Every kernel of a network on a simulated machine: proved free of races, run alone, compared with the interpreter."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import CallOp, FuncOp

from msc.codegen.davinci.emit_program import launched
from msc.dialects.arrays import Array
from msc.dialects.davinci import DavinciKernelOp
from msc.dialects.davinci.kernels import scalar_cycles
from msc.driver.compile import Compilation, Step, compile_read, generate_c
from msc.driver.models.interpretation import input_tensors
from msc.driver.models.model_inputs import choose_inputs
from msc.driver.models.model_outputs import Tolerance, largest_error
from msc.driver.models.reading_models import read_model
from msc.driver.options import CompileOptions
from msc.driver.reports.kernel_records import KernelRecord, c_names, kernel_caller, record_kernels, run_kernel
from msc.runtime.build import BuildOptions, build
from msc.support.temporary import temporary_folder

SCALAR = "scalar"


@dataclass(frozen=True)
class CheckedKernel:
    """A kernel, the unit that ran it, its largest difference as a part of what is allowed, its seconds, its fault."""

    name: str
    unit: str
    error: float
    seconds: float
    problem: str = ""

    @property
    def is_proved(self) -> bool:
        """Whether it has flags, which the compilation proved; the scalar unit needs none."""
        return self.unit != SCALAR


def check_model(path: Path, target: str, given: Mapping[str, Array]) -> list[CheckedKernel]:
    """Compile a model for a target, which proves its kernels, and run each distinct kernel; inputs may be `given`.

    Raises MscError where a kernel does not compile, or is not free of races.
    """
    options = CompileOptions(target=target, export_kernels=True)
    model = read_model(str(path), options)
    weights, records = model.weights(), list[KernelRecord]()

    def record(step: Step, module: ModuleOp) -> None:
        if step.name == "convert-gk-to-loop":
            inputs = choose_inputs(input_tensors(module), given, 0)
            records.extend(record_kernels(module, inputs, weights))

    compilation = compile_read(model, options, after_step=record)
    with temporary_folder("models") as folder:
        program = generate_c(compilation)
        library = build(program, compilation.parameters(), "so", folder / "model.so", BuildOptions())
        return _run(compilation, program.kernels, ctypes.CDLL(str(library)), {r.function: r for r in records})


def _run(
    compilation: Compilation, calls: tuple[str, ...], library: ctypes.CDLL, records: Mapping[str, KernelRecord]
) -> list[CheckedKernel]:
    names = c_names(compilation.module, calls)
    units = _units(compilation.module)
    made: list[CheckedKernel] = []
    for function, unit in units.items():
        if function not in records:
            made.append(CheckedKernel(function, unit, 0.0, 0.0, "the interpreter did not record it"))
            continue
        start = time.perf_counter()
        found = run_kernel(compilation.module, records[function], kernel_caller(library, names[function]))
        seconds = time.perf_counter() - start
        error = _error(records[function], found)
        made.append(CheckedKernel(function, unit, error, seconds, "" if error <= 1 else "computes something else"))
    return made


def _units(module: ModuleOp) -> dict[str, str]:
    """The functions of kernels that the model calls, and the units that run them."""
    kernels = {op.sym_name.data: op for op in module.body.block.ops if isinstance(op, DavinciKernelOp)}
    functions = {op.sym_name.data: op for op in module.body.block.ops if isinstance(op, FuncOp)}
    called = dict.fromkeys(op.callee.string_value() for op in module.walk() if isinstance(op, CallOp))
    found = {name: kernels[core] for name in called if (core := launched(functions[name]) or "") in kernels}
    return {name: SCALAR if scalar_cycles(op) is not None else op.kind.data for name, op in found.items()}


def _error(record: KernelRecord, found: Sequence[Array]) -> float:
    """The largest difference as a part of what the element types allow; infinite beyond it."""
    parts = [0.0]
    for got, expected in zip(found, record.outputs, strict=True):
        tolerance = Tolerance().scaled(expected, record.inputs)
        agrees = tolerance.agree(got, expected)
        parts.append(largest_error(got, expected) / tolerance.absolute if agrees else float("inf"))
    return max(parts)
