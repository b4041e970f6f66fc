"""Run the ONNX conformance suite: `python -m tests.conformance --executor interp,c --write`."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click

from tests.conformance.backend import PREPARE, Executor
from tests.conformance.expectations import surprises, write_expectations
from tests.conformance.report import table, write_page
from tests.conformance.running import Outcome, run_cases
from tests.conformance.suite import CATEGORIES, RANDOM, Case, cases
from tests.name_lists import names_of

KINDS = (*CATEGORIES.values(), RANDOM)


@click.command()
@click.option(
    "--executor", "names", type=names_of(PREPARE), default="interp", show_default=True, help="interp, c, or interp,c."
)
@click.option("--kinds", type=names_of(KINDS), default=",".join(KINDS), show_default=True, help="Kinds of cases.")
@click.option("--match", "pattern", default="", help="Only cases whose name this regular expression finds.")
@click.option("--seconds", default=120, show_default=True, help="Time limit of a case.")
@click.option("--record", type=click.Path(path_type=Path), help="Add one JSON line a case to this file.")
@click.option("--from-record", type=click.Path(path_type=Path, exists=True), help="Do not run: read such a file.")
@click.option("--write", is_flag=True, help="Write the table into docs/evidence/onnx-conformance.md.")
@click.option("--write-expectations", "expect", is_flag=True, help="Write the file of expected failures.")
def main(
    names: Sequence[Executor],
    kinds: Sequence[str],
    pattern: str,
    seconds: int,
    record: Path | None,
    from_record: Path | None,
    write: bool,
    expect: bool,
) -> None:
    """Run cases, print the table, and exit 1 if a case goes otherwise than the file of expected failures says."""
    if from_record is not None:
        results = _recorded(from_record)
    else:
        chosen = [case for case in cases(frozenset(kinds)) if re.search(pattern, case.name)]
        results = {name: _run(chosen, name, seconds, record) for name in names}
    click.echo(table(results))
    if expect:
        write_expectations(results)
    if write:
        write_page(results)
    sys.exit(_report(results))


def _run(chosen: Sequence[Case], executor: Executor, seconds: int, record: Path | None) -> list[Outcome]:
    outcomes: list[Outcome] = []
    for outcome in run_cases(chosen, executor, seconds):
        outcomes.append(outcome)
        if record is not None:
            with record.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"executor": executor, **asdict(outcome)}) + "\n")
    return outcomes


def _recorded(path: Path) -> dict[str, list[Outcome]]:
    """Outcomes by executor; of a case that stands twice, the last."""
    rows: dict[str, dict[str, Outcome]] = {}
    for line in path.read_text("utf-8").splitlines():
        row = json.loads(line)
        executor = row.pop("executor")
        row |= {name: tuple(row[name]) for name in ("classes", "bound")}
        rows.setdefault(executor, {})[f"{row['kind']} {row['name']}"] = Outcome(**row)
    return {executor: list(found.values()) for executor, found in rows.items()}


def _report(results: dict[str, list[Outcome]]) -> int:
    wrong = [(executor, s) for executor, outcomes in results.items() for s in surprises(outcomes, executor)]
    for executor, surprise in wrong:
        click.echo(f"{executor} {surprise.name}: {surprise.text}", err=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    main()
