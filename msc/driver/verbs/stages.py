"""`msc stages`: the walk from model to artifact, as the driver's stage table has it."""

from __future__ import annotations

import click


@click.command(name="stages")
def command() -> None:
    """List the stages from model to artifact: name, file extension and what is legal in each.

    Example: msc stages
    """
    from rich.console import Console
    from rich.table import Table

    from msc.driver.stages import STAGES

    table = Table("stage", "file", "legal in it", "made by", box=None)
    for stage in STAGES:
        table.add_row(stage.name, stage.extension, stage.contents, stage.made_by)
    Console().print(table)
