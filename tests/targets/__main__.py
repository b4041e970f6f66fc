"""Suites of tests on each target, on other machines than this one by emulation: `python -m tests.targets`."""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import click

from benchmarks.pages import write_marked
from tests.exhaustive_vector_math import ONE_ARGUMENT
from tests.name_lists import names_of, part
from tests.switched.records import keep, kept
from tests.switched.suites import SUITES, chosen
from tests.targets.machines import MACHINES
from tests.targets.trying import MATHS, Outcome, measured, tried

PAGE = Path(__file__).parents[2] / "docs" / "evidence" / "machines.md"
ALL = (MATHS, *(suite for suite in SUITES if suite != "light models"))


@click.command()
@click.option(
    "--machines",
    "names",
    type=names_of(MACHINES),
    default=",".join(MACHINES),
    show_default=True,
    help="Where programs are built for and run.",
)
@click.option(
    "--suites", type=names_of(ALL), default=",".join(ALL), show_default=True, help="Where the checks come from."
)
@click.option("--match", "pattern", default="", help="Only checks whose name this regular expression finds.")
@click.option(
    "--part", type=part, default="0/1", show_default=True, help="K/N: of N equal parts the one numbered K, from 0."
)
@click.option("--cflags", default="", help="For the C compiler, after msc's own, say -O1 to be done sooner.")
@click.option("--seconds", default=600, show_default=True, help="Time limit of a check.")
@click.option("--record", type=click.Path(path_type=Path), help="A JSON line a check; what stands there is done.")
@click.option("--write", is_flag=True, help="Write the table into docs/evidence/machines.md.")
def main(
    names: Sequence[str],
    suites: Sequence[str],
    pattern: str,
    part: tuple[int, int],
    cflags: str,
    seconds: int,
    record: Path | None,
    write: bool,
) -> None:
    """Do the checks and print the table; exit 1 if one fails, 2 if a compiler or an emulator is missing."""
    _require(names)
    found = kept(Outcome, record)
    for machine in names:
        done = {(outcome.suite, outcome.name) for outcome in found if outcome.machine == machine}
        for outcome in _outcomes(machine, suites, pattern, part, done, cflags.split(), seconds):
            _tell(outcome, record)
            found.append(outcome)
    click.echo(table(found))
    if write:
        write_marked(PAGE, "targets", table(found))
    sys.exit(any(outcome.reason for outcome in found))


def _require(names: Sequence[str]) -> None:
    """Exit unless there is everything that the machines need."""
    problems = [f"{name}: {problem}" for name in names if (problem := MACHINES[name].missing())]
    if problems:
        raise click.UsageError("\n".join([*problems, "--machines chooses others"]))


def _outcomes(
    machine: str,
    suites: Sequence[str],
    pattern: str,
    part: tuple[int, int],
    done: Collection[tuple[str, str]],
    flags: Sequence[str],
    seconds: int,
) -> Iterator[Outcome]:
    if MATHS in suites:
        functions = [f for f in ONE_ARGUMENT if re.search(pattern, f) and (MATHS, f) not in done]
        yield from (measured(machine, function, flags, seconds) for function in functions)
    for suite, check in chosen([s for s in suites if s != MATHS], pattern, part, done):
        yield tried(machine, suite, check, flags, seconds)


def _tell(outcome: Outcome, record: Path | None) -> None:
    """Record an outcome, and show it if it is a failure."""
    if outcome.reason:
        click.echo(f"{outcome.machine} {outcome.suite} {outcome.name}: {outcome.reason}", err=True)
    keep(outcome, record)


def table(outcomes: Sequence[Outcome]) -> str:
    """A row for each machine, a column for each suite: checks that pass, of those done."""
    suites = list(dict.fromkeys(outcome.suite for outcome in outcomes))
    machines = list(dict.fromkeys(outcome.machine for outcome in outcomes))
    rows = [[machine, *(_cell(outcomes, machine, suite) for suite in suites)] for machine in machines]
    head = [["machine", *suites], ["---", *("---:" for _ in suites)]]
    return "\n".join(f"| {' | '.join(row)} |" for row in [*head, *rows])


def _cell(outcomes: Sequence[Outcome], machine: str, suite: str) -> str:
    reasons = [o.reason for o in outcomes if (o.machine, o.suite) == (machine, suite)]
    return f"{reasons.count('')} of {len(reasons)}"


if __name__ == "__main__":
    main()
