"""`msc sim`: a kernel for DaVinci cores on the simulator, the kernels of a model, or a list of cases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import click

from msc.backends.backend import Backend, Simulation
from msc.backends.registry import SIMULATED, find_backend, found_backends
from msc.driver.verbs.cell_options import with_cells
from msc.driver.verbs.verb import Verb, say
from msc.support.diagnostics import Diagnostic, MscError


@click.command(name="sim", cls=Verb)
@click.argument("file", required=False)
@click.option("--target", metavar="NAME", help=f"The machine: {SIMULATED} unless the kernel says otherwise.")
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
@click.option("--emit", metavar="FORM", help="Print the kernel, or its C (c), and simulate nothing.")
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
    if (file is None) == (cases is None):
        raise click.UsageError("give a kernel file, or --cases FILE.toml")
    backend = _backend(target)
    kinds = (backend.table.last.name, backend.forms[0].name)
    if emit is not None and emit not in kinds:
        raise click.BadParameter(f"'{emit}' is not one of {', '.join(kinds)}", param_hint="--emit")
    functional = None if timing_only is None else not timing_only
    asked = Simulation(target, functional, check, l2, l2_mb, limit, emit, json_out, trace, csv, svg, force=force)
    if cases is not None:
        backend.simulator().cases(Path(cases), asked, partial(say, end=""))
        return
    assert file is not None
    if file.endswith(backend.table.last.extension):
        say(backend.simulator().kernels(file, replace(asked, window=_window(window))), end="")
        return
    from msc.driver.compile import compile_model
    from msc.driver.options import CompileOptions
    from msc.driver.verbs.model_options import parse_dims

    _check_model_options(backend, {"--trace": trace, "--csv": csv, "--svg": svg, "--emit": emit, "--window": window})
    options = CompileOptions(target=backend.name, dims=parse_dims(dims))
    module = compile_model(file, options, stop_after=backend.table.last.name).module
    say(backend.simulator().model(file, module, asked), end="")


def _backend(name: str | None) -> Backend:
    """The simulated back end of a name, the usual one for None. Raises MSC0506 for one that is not simulated."""
    backend = find_backend(SIMULATED if name is None else name)
    if not backend.simulated:
        known = ", ".join(each.name for each in found_backends() if each.simulated)
        message = f"the target '{name}' is not simulated; {known} are"
        raise MscError(Diagnostic("MSC0506", message, help="msc bench times what this machine runs"))
    return backend


def _check_model_options(backend: Backend, given: Mapping[str, str | None]) -> None:
    """Raises MSC0014 for options that are for kernels alone."""
    for option, value in given.items():
        if value is not None:
            message = f"{option} has no effect here: it is for a kernel"
            last = backend.table.last.name
            help_line = f"msc compile MODEL --target {backend.name} --emit {last} writes a model's kernels"
            raise MscError(Diagnostic("MSC0014", message, help=help_line))


def _window(text: str | None) -> tuple[float, float] | None:
    if text is None:
        return None
    start, _, end = text.partition(":")
    try:
        return float(start), float(end)
    except ValueError as error:
        raise click.UsageError("--window is START:END, in cycles") from error
