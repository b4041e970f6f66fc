"""`msc stages`: the walk from model to artifact, as the driver's stage table has it."""

from __future__ import annotations

import json

import click

from msc.driver.verbs.verb import Verb


@click.command(name="stages", cls=Verb)
@click.option(
    "--passes", is_flag=True, help="Show what makes and verifies each stage, and why passes stand in this order."
)
@click.option("--json", "as_json", is_flag=True, help="Print the table as JSON.")
def command(passes: bool, as_json: bool) -> None:
    """List the stages from model to artifact: name, file extension and what is legal in each.

    Example: msc stages --passes
    """
    if as_json:
        click.echo(_json())
    elif passes:
        click.echo(_passes())
    else:
        _print_table()


def _print_table() -> None:
    from rich.console import Console
    from rich.table import Table

    from msc.driver.passes.stages import STAGES

    table = Table("stage", "file", "what stands in it", "made by", box=None)
    for stage in STAGES:
        table.add_row(stage.name, stage.extension, stage.contents, stage.made_by)
    Console().print(table)


def _passes() -> str:
    from msc.driver.passes.stages import ORDER, STAGES

    lines = list[str]()
    for stage in STAGES:
        if stage.passes:
            lines += [f"{stage.name}:", *(f"  {spec}" for spec in stage.passes)]
        if stage.verifiers:
            lines += [f"{stage.name}, verified wherever it comes in:", *(f"  {spec}" for spec in stage.verifiers)]
    lines += ["", "order:", *(f"  {rule.before} before {rule.after}: {rule.reason}" for rule in ORDER)]
    return "\n".join(lines)


def _json() -> str:
    from msc.driver.passes.stages import STAGES

    return json.dumps([vars(stage) for stage in STAGES], default=list)
