"""`msc parallel`: a plan for many devices, or predictions for a list of cases."""

from __future__ import annotations

from pathlib import Path

import click

from msc.driver.verbs.verb import Verb, say


@click.group(name="parallel")
def command() -> None:
    """Plan models on many devices, and measure the links between them.

    Example: msc parallel plan --cases runs.toml
    """


@command.command(name="plan", cls=Verb)
@click.option("--cases", type=click.Path(dir_okay=False), help="Predict the cases of a TOML file.")
@click.option(
    "--json",
    "json_out",
    is_flag=False,
    flag_value="-",
    metavar="[FILE]",
    help="Write the figures as JSON to FILE, or print them.",
)
@click.option("--force", is_flag=True, help="Let results replace files that msc did not write.")
def plan(cases: str | None, json_out: str | None, force: bool) -> None:
    """Find layouts, the mesh, micro-batches and the pipeline of a training step, and predict its time and memory.

    Example: msc parallel plan --cases runs.toml --json predictions.json
    """
    from msc.driver.reports import parallel_plans

    if cases is None:
        raise click.UsageError("give --cases FILE.toml")
    say(parallel_plans.cases_report(Path(cases), json_out, force), end="")
