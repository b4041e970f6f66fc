"""What `msc sim` does: a kernel or a list of cases to text and files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from msc.backends.backend import Simulation
from msc.backends.simulation.case_files import read_cases
from msc.backends.simulation.case_report import CaseOutcome, case_table, errors_text, run_case, same_order, timed_cases
from msc.backends.simulation.kernels import arguments_of, kernel_text, read_kernels
from msc.backends.simulation.models import model_figures, model_table, simulate_module
from msc.backends.simulation.result_files import Outputs, figures_text, write_results
from msc.codegen.davinci.emit_cce import emit_cce
from msc.codegen.davinci.simulate import DEFAULTS, SimulationOptions, check_kernel, simulate_kernel
from msc.sim.machine import INSTRUCTION_LIMIT, L2State
from msc.sim.result import PIPES_OF, PREFIXES, SimulationResult
from msc.support.diagnostics import raise_any
from msc.support.escaping import shown
from msc.support.files import read_source
from msc.support.outputs import OutputGuard

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

_TRACE_EVENTS = 2_000_000


class DavinciSimulator:
    """What `msc sim` runs."""

    def __init__(self, machine: str) -> None:
        self._machine = machine

    def kernels(self, path: str, asked: Simulation) -> str:
        """The kernels of a file, on `asked.target` or their own machine."""
        outputs = Outputs(asked.json, asked.trace, asked.csv, asked.svg, asked.window, asked.force)
        options = replace(options_of(asked), functional=asked.functional is not False)
        return simulate_file(path, asked.target, options, asked.check, outputs, asked.emit)

    def model(self, path: str, module: ModuleOp, asked: Simulation) -> str:
        """The table of a model's kernels, or their figures."""
        kernels = simulate_module(module, options_of(asked), check=asked.check)
        table = model_table(self._machine, kernels)
        if asked.json is None:
            return table
        figures = model_figures(self._machine, kernels)
        written = figures_text(figures, asked.json, OutputGuard((Path(path),), asked.force))
        return written if asked.json == "-" else table

    def cases(self, path: Path, asked: Simulation, tell: Callable[[str], object]) -> None:
        """Cases are for timing alone, unless they are to compute."""
        options = replace(options_of(asked), functional=asked.functional is True)
        simulate_cases(path, asked.target, asked.json, tell, options=options, force=asked.force)


def options_of(asked: Simulation) -> SimulationOptions:
    """What is asked for, as the simulator takes it."""
    return SimulationOptions(l2=L2State.of(asked.l2, asked.l2_mb), limit=asked.limit or INSTRUCTION_LIMIT)


def simulate_file(
    path: str,
    target: str | None,
    chosen: SimulationOptions,
    check: bool,
    outputs: Outputs,
    emit: str | None = None,
) -> str:
    """Simulate the kernels of a file; the text to print. Files are written. Raises MscError."""
    kernels = read_kernels(path, target)
    if emit is not None:
        return "".join(emit_cce(k).text if emit == "c" else kernel_text(k) for k in kernels)
    sources = {path: read_source(Path(path))}
    results: dict[str, SimulationResult] = {}
    for kernel in kernels:
        if check:
            check_kernel(kernel, sources, chosen.limit)
        options = replace(chosen, trace_events=_TRACE_EVENTS * outputs.traced)
        data = arguments_of(kernel) if options.functional else []
        results[kernel.sym_name.data] = simulate_kernel(kernel, options, data, (), sources)
    inputs = (Path(path),)
    write_results(results, outputs, inputs)
    if outputs.json is None:
        return "".join(report(name, result) for name, result in results.items())
    figures = [{"kernel": name, **result.to_json()} for name, result in results.items()]
    table = figures[0] if len(figures) == 1 else {"kernels": figures}
    return figures_text(table, outputs.json, OutputGuard(inputs, outputs.force))


def report(name: str, result: SimulationResult) -> str:
    """A run as a person reads it."""
    target = result.target
    lines = [
        f"{shown(name)} on {target.name}: {result.cycles:.0f} cycles, {result.task_us:.2f} us "
        f"on {len(result.cores)} cores, {result.binding_pipe} binds"
    ]
    for kind in result.kinds:
        whole = max(1.0, result.core_us(kind) * target.clock.mhz)
        for pipe in PIPES_OF[kind]:
            busy = result.busy(pipe, kind)
            if busy:
                lines.append(f"  {PREFIXES[kind] + pipe:12} {busy:12.1f} cycles {100 * busy / whole:6.1f} %")
    if result.macs:
        roof = result.roofline()
        lines.append(f"  cube utilisation {100 * result.cube_utilisation:.1f} %")
        lines.append(
            f"  roofline: {roof['macs_per_l2_byte']:.1f} MAC a byte of L2, {roof['macs_per_hbm_byte']:.1f} of HBM, "
            f"{roof['achieved_macs_per_cycle']:.0f} of {roof['attainable_macs_per_cycle']:.0f} MAC a cycle"
        )
    for path, count in sorted(result.path_bytes().items()):
        lines.append(f"  {path:12} {count / 1024:12.1f} KiB")
    hits = result.l2_hits + result.l2_misses
    if hits:
        lines.append(f"  L2 hits {100 * result.l2_hits / hits:.1f} %, HBM {result.hbm_bytes / 1024:.1f} KiB")
    return "\n".join(lines) + "\n"


def simulate_cases(
    path: Path,
    target: str | None,
    json_out: str | None,
    tell: Callable[[str], object],
    *,
    options: SimulationOptions = DEFAULTS,
    force: bool = False,
) -> None:
    """Simulate a file of cases; `tell` gets the text to print. Raises MscError, at the end for single cases."""
    outcomes = [run_case(case, options) for case in read_cases(path, target)]
    table = {"cases": [outcome.to_json() for outcome in outcomes], "same_order": same_order(outcomes)}
    written = figures_text(table, json_out, OutputGuard((path,), force)) if json_out is not None else ""
    tell(written if json_out == "-" else _table_text(outcomes))
    refused = [d for o in outcomes if o.refused is not None for d in o.refused.diagnostics]
    raise_any(refused)


def _table_text(outcomes: Sequence[CaseOutcome]) -> str:
    text = case_table(outcomes)
    timed = timed_cases(outcomes)
    if timed:
        worst = max(timed, key=lambda o: abs(o.error("task_us") or 0.0))
        error = 100 * (worst.error("task_us") or 0.0)
        order = "the same" if same_order(outcomes) else "another"
        text += (
            f"\n\nworst task time: {error:+.1f} % ({shown(worst.case.name)}); order of the cases: {order} as published"
        )
        text += f"\n{errors_text(outcomes)}"
    return text + "\n"
