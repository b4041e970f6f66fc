"""`msc sim`: a kernel for DaVinci cores on the simulator, or a list of cases."""

from __future__ import annotations

from pathlib import Path

import click

from msc.driver.verbs.verb import Verb


@click.command(name="sim", cls=Verb)
@click.argument("file", required=False)
@click.option("--target", metavar="NAME", help="The machine: ascend910b1 unless the kernel says otherwise.")
@click.option("--timing-only", is_flag=True, help="No data: for shapes that would take long to compute.")
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
@click.option("--emit", type=click.Choice(["davinci", "c"]), help="Print the kernel, or its C, and simulate nothing.")
def command(
    file: str | None,
    target: str | None,
    timing_only: bool,
    cases: str | None,
    json_out: str | None,
    trace: str | None,
    csv: str | None,
    svg: str | None,
    force: bool,
    window: str | None,
    check: bool,
    emit: str | None,
) -> None:
    """Simulate the kernel of FILE (.dv.mir): cycles, busy pipes, bytes, what binds; traces and pictures of it.

    Example: msc sim samples/davinci/add.dv.mir --target ascend910b1
    """
    from msc.driver.simulation.result_files import Outputs
    from msc.driver.simulation.running import simulate_cases, simulate_file

    if (file is None) == (cases is None):
        raise click.UsageError("give a kernel file, or --cases FILE.toml")
    if cases is not None:
        click.echo(simulate_cases(Path(cases), target, json_out, force=force), nl=False)
        return
    assert file is not None
    outputs = Outputs(json_out, trace, csv, svg, _window(window), force)
    click.echo(simulate_file(file, target, timing_only, check, outputs, emit), nl=False)


def _window(text: str | None) -> tuple[float, float] | None:
    if text is None:
        return None
    start, _, end = text.partition(":")
    try:
        return float(start), float(end)
    except ValueError as error:
        raise click.UsageError("--window is START:END, in cycles") from error
