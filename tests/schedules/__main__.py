"""``python -m tests.schedules [--write]``: which schedules differ from those recorded, or record them."""

from __future__ import annotations

import click

from tests.schedules.records import MACHINES, difference, record


@click.command()
@click.option("--write", is_flag=True, help="Record what is picked now.")
def main(write: bool) -> None:
    """Compare the schedules that are picked for the layers of `layers.mir` with those recorded for each target."""
    changes = list[str]()
    for machine in MACHINES:
        found = record(machine)
        changes.append(difference(machine, found))
        click.echo(changes[-1] or f"{machine.path.name}: as recorded")
        if write:
            machine.path.write_text(found, encoding="utf-8")
    if any(changes) and not write:
        raise SystemExit(1)


if __name__ == "__main__":
    main(prog_name="python -m tests.schedules")
