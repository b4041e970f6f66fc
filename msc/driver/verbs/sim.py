"""`msc sim`: a kernel for DaVinci cores on the simulator, the kernels of a model, or a list of cases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from msc.driver.verbs.cell_options import with_cells
from msc.driver.verbs.verb import Verb, say
from msc.support.diagnostics import Diagnostic, MscError
from msc.support.outputs import OutputGuard

if TYPE_CHECKING:
    from msc.codegen.davinci.simulate import SimulationOptions


@click.command(name="sim", cls=Verb)
@click.argument("file", required=False)
@click.option("--target", metavar="NAME", help="The machine: ascend910b1 unless the kernel says otherwise.")
@click.option(
    "--timing-only/--functional",
    "timing_only",
    default=None,
    help="Whether data is left out, for shapes that would take long to compute. Cases are for timing only by default.",
)
@click.option("--cases", "cases", type=click.Path(dir_okay=False), help="Simulate the cases of a TOML file instead.")
@click.option(
    "--json",
    "json_out",
    is_flag=False,
    flag_value="-",
    metavar="[FILE]",
    help="Write the figures as JSON to FILE, or print them.",
)
@click.option("--trace", type=click.Path(dir_okay=False), help="Write a Chrome/Perfetto trace.")
@click.option(
    "--csv",
    "csv",
    type=click.Path(file_okay=False),
    metavar="FOLDER",
    help="Write CSVs of instructions and pipes into a folder.",
)
@click.option("--svg", type=click.Path(dir_okay=False), help="Draw the pipeline.")
@click.option("--force", is_flag=True, help="Let results replace files that msc did not write.")
@click.option("--window", metavar="START:END", help="Cycles that --svg draws.")
@click.option("--check/--no-check", default=True, help="Prove the kernel free of races and deadlock first.")
@click.option(
    "--l2",
    type=click.Choice(["cold", "warm"]),
    default="warm",
    show_default=True,
    help="Whether L2 starts empty, or as the same kernel left it. Cases may name their own.",
)
@click.option("--l2-mb", type=click.IntRange(1), metavar="MB", help="How much L2 keeps, if less than it has.")
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Stop a kernel after so many instructions.")
@click.option("--dim", "dims", multiple=True, metavar="NAME=SIZE", help="Size of a dimension that a model leaves open.")
@click.option("--emit", type=click.Choice(["davinci", "c"]), help="Print the kernel, or its C, and simulate nothing.")
@with_cells
def command(
    file: str | None,
    target: str | None,
    timing_only: bool | None,
    cases: str | None,
    json_out: str | None,
    trace: str | None,
    csv: str | None,
    svg: str | None,
    force: bool,
    window: str | None,
    check: bool,
    l2: str,
    l2_mb: int | None,
    limit: int | None,
    dims: tuple[str, ...],
    emit: str | None,
) -> None:
    """Simulate the kernel of FILE (.dv.mir): cycles, busy pipes, bytes, what binds; traces and pictures of it.

    FILE may be a model too: each kernel of it is timed, and a table shows what takes how long.

    Example: msc sim samples/davinci/add.dv.mir --target ascend910b1
    """
    from msc.codegen.davinci.simulate import SimulationOptions
    from msc.driver.simulation.result_files import Outputs
    from msc.driver.simulation.running import simulate_cases, simulate_file
    from msc.sim.machine import INSTRUCTION_LIMIT, L2State

    if (file is None) == (cases is None):
        raise click.UsageError("give a kernel file, or --cases FILE.toml")
    options = SimulationOptions(l2=L2State.of(l2, l2_mb), limit=limit or INSTRUCTION_LIMIT)
    if cases is not None:
        options = replace(options, functional=timing_only is False)
        tell = partial(say, end="")
        simulate_cases(Path(cases), target, json_out, tell, options=options, force=force)
        return
    assert file is not None
    if not file.endswith(".dv.mir"):
        _check_model_options({"--trace": trace, "--csv": csv, "--svg": svg, "--emit": emit, "--window": window})
        say(_model(file, target, dims, json_out, options, force=force, check=check), end="")
        return
    outputs = Outputs(json_out, trace, csv, svg, _window(window), force)
    options = replace(options, functional=not timing_only)
    say(simulate_file(file, target, options, check, outputs, emit), end="")


def _check_model_options(given: Mapping[str, str | None]) -> None:
    """Raises MSC0014 for options that are for kernels alone."""
    for option, value in given.items():
        if value is not None:
            message = f"{option} has no effect here: it is for a kernel"
            help_line = "msc compile MODEL --target ascend910b1 --emit davinci writes a model's kernels"
            raise MscError(Diagnostic("MSC0014", message, help=help_line))


def _model(
    file: str,
    target: str | None,
    dims: tuple[str, ...],
    json_out: str | None,
    options: SimulationOptions,
    *,
    force: bool,
    check: bool,
) -> str:
    from msc.driver.options import CompileOptions
    from msc.driver.simulation.models import model_figures, model_table, simulate_model
    from msc.driver.simulation.result_files import figures_text
    from msc.driver.verbs.model_options import parse_dims
    from msc.targets.davinci import DEFAULT_TARGET, davinci_target

    machine = davinci_target(target or DEFAULT_TARGET).name
    kernels = simulate_model(file, CompileOptions(target=machine, dims=parse_dims(dims)), options, check=check)
    table = model_table(machine, kernels)
    if json_out is None:
        return table
    written = figures_text(model_figures(machine, kernels), json_out, OutputGuard((Path(file),), force))
    return written if json_out == "-" else table


def _window(text: str | None) -> tuple[float, float] | None:
    if text is None:
        return None
    start, _, end = text.partition(":")
    try:
        return float(start), float(end)
    except ValueError as error:
        raise click.UsageError("--window is START:END, in cycles") from error
