"""Suites of tests without each optimisation in turn: `python -m tests.switched --write switched`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from msc.backends.registry import find_backend
from tests.name_lists import names_of, part
from tests.switched.records import keep, kept
from tests.switched.report import table, write_page
from tests.switched.suites import SUITES, chosen
from tests.switched.trying import Tried, tried

SWITCHES = find_backend("cpu").all_switches


@click.command()
@click.option(
    "--without",
    "names",
    type=names_of(SWITCHES),
    default=",".join(SWITCHES),
    help="Optimisations to turn off, each in turn [default: all].",
)
@click.option(
    "--suites", type=names_of(SUITES), default=",".join(SUITES), show_default=True, help="Where the checks come from."
)
@click.option("--match", "pattern", default="", help="Only checks whose name this regular expression finds.")
@click.option(
    "--part", type=part, default="0/1", show_default=True, help="K/N: of N equal parts the one numbered K, from 0."
)
@click.option("--seconds", default=600, show_default=True, help="Time limit of a check without one optimisation.")
@click.option("--record", type=click.Path(path_type=Path), help="A JSON line a check; what stands there is done.")
@click.option("--write", "mark", help="Write the table into the page, between the marks of this name.")
def main(
    names: Sequence[str],
    suites: Sequence[str],
    pattern: str,
    part: tuple[int, int],
    seconds: int,
    record: Path | None,
    mark: str | None,
) -> None:
    """Do the checks, print the table, and exit 1 if one fails without an optimisation."""
    found = kept(Tried, record)
    remaining = chosen(suites, pattern, part, {(outcome.suite, outcome.name) for outcome in found})
    for suite, check in remaining:
        outcome = tried(suite, check, names, seconds)
        _tell(outcome, record)
        found.append(outcome)
    click.echo(table(found, names))
    if mark is not None:
        write_page(found, names, mark)
    sys.exit(any(why for outcome in found for why in (*outcome.reasons.values(), outcome.refused)))


def _tell(outcome: Tried, record: Path | None) -> None:
    """Record an outcome, and show its failures."""
    for name, why in {**outcome.reasons, "": outcome.refused}.items():
        if why:
            click.echo(f"{outcome.suite} {outcome.name} {name and 'without ' + name}: {why}", err=True)
    keep(outcome, record)


if __name__ == "__main__":
    main()
