"""The kernels of a model on the simulator: a table of what each takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp, SymbolRefAttr
from xdsl.dialects.func import CallOp, FuncOp

from msc.analysis.repetition import times_run
from msc.codegen.davinci.simulate import DEFAULTS, SimulationOptions, check_kernel, simulate_kernel
from msc.dialects.davinci import DavinciKernelOp
from msc.dialects.davinci.attributes import DAVINCI_KERNEL
from msc.dialects.davinci.kernels import scalar_cycles
from msc.sim.result import SimulationResult
from msc.support.escaping import table_text
from msc.support.progress import step


@dataclass(frozen=True)
class SimulatedRun:
    """A kernel: its name, how often a call of the model runs it (None: that is computed), and one run of it.

    `result` is None for a kernel that the scalar units of `cores` run.
    """

    name: str
    runs: int | None
    microseconds: float
    cycles: float
    unit: str
    result: SimulationResult | None
    cores: int = 1

    def to_json(self) -> dict[str, object]:
        """As `msc sim MODEL --json` writes it."""
        more: dict[str, object] = {} if self.result is None else self.result.to_json()
        return {
            "kernel": self.name, "runs": self.runs, "unit": self.unit, "cycles": self.cycles,
            "task_us": self.microseconds, **more,
        }  # fmt: skip


def simulate_module(module: ModuleOp, simulated: SimulationOptions = DEFAULTS, *, check: bool) -> list[SimulatedRun]:
    """Time each kernel of a model at the stage `davinci`, in the order of the first run.

    With `check`, prove each free of races first. Raises MscError.
    """
    kernels = {op.sym_name.data: op for op in module.body.block.ops if isinstance(op, DavinciKernelOp)}
    found: list[SimulatedRun] = []
    runs = _runs(module)
    for number, (function, count) in enumerate(runs.items(), 1):
        kernel = kernels.get(_core(module, function))
        if kernel is not None:
            step(f"sim: {number} of {len(runs)}, {function}")
            found.append(_simulated(function, kernel, count, simulated, check))
    return found


def _runs(module: ModuleOp) -> dict[str, int | None]:
    """The functions that are called, and how often."""
    found: dict[str, int | None] = {}
    for call in module.walk():
        if isinstance(call, CallOp):
            name, times = call.callee.string_value(), times_run(call)
            before = found.get(name, 0)
            found[name] = None if times is None or before is None else before + times
    return found


def _core(module: ModuleOp, function: str) -> str:
    for op in module.body.block.ops:
        if isinstance(op, FuncOp) and op.sym_name.data == function:
            name = op.attributes.get(DAVINCI_KERNEL)
            return name.string_value() if isinstance(name, SymbolRefAttr) else ""
    return ""


def _simulated(
    name: str, kernel: DavinciKernelOp, runs: int | None, options: SimulationOptions, check: bool
) -> SimulatedRun:
    cycles = scalar_cycles(kernel)
    if cycles is not None:
        return SimulatedRun(
            name, runs, kernel.machine.microseconds(cycles), cycles, "scalar", None, kernel.blocks.value.data
        )
    if check:
        check_kernel(kernel, limit=options.limit)
    result = simulate_kernel(kernel, options)
    return SimulatedRun(name, runs, result.task_us, result.cycles, kernel.kind.data, result)


def model_table(target: str, kernels: Sequence[SimulatedRun]) -> str:
    """The table that a person reads, and the sum."""
    rows = list[Sequence[str]]()
    total = sum(k.microseconds * (k.runs or 1) for k in kernels)
    for k in kernels:
        result = k.result
        cube = f"{100 * result.cube_utilisation:.1f} %" if result is not None and result.macs else ""
        cores, binds = (str(k.cores), "scalar") if result is None else (str(len(result.cores)), result.binding_pipe)
        share = 100 * k.microseconds * (k.runs or 1) / total if total else 0.0
        runs = "?" if k.runs is None else str(k.runs)
        figures = f"{k.microseconds:.2f}", f"{k.cycles:.0f}"
        rows.append((k.name, runs, *figures, k.unit, cores, cube, binds, f"{share:.1f} %"))
    text = table_text(("kernel", "runs", "us", "cycles", "unit", "cores", "cube", "binds", "share"), rows)
    return f"{text}\n\n{len(kernels)} kernels on {target}: {total:.1f} us\n"


def model_figures(target: str, kernels: Sequence[SimulatedRun]) -> dict[str, object]:
    """The same as JSON has it."""
    return {"target": target, "kernels": [kernel.to_json() for kernel in kernels]}
