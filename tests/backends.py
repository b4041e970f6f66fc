"""Suites of tests through a back end, one that another package brings too: `python -m tests.backends scalar`."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import replace

import click

from msc.backends.registry import find_backend
from msc.driver.models.reading_models import LoadedModel
from msc.driver.options import CompileOptions
from msc.support.diagnostics import MscError
from tests.conformance.running import reason
from tests.name_lists import names_of, part
from tests.switched.suites import SUITES, chosen
from tests.switched.trying import Compile, Function, compile_loaded
from tests.unit.compiled.programs import QUICK

OPERATORS = "node,operations,random graphs,control flow"


def through(target: str) -> Compile:
    """Compiles for the default machine of a back end, in one thread."""

    def compile_(model: LoadedModel, options: CompileOptions) -> Function:
        return compile_loaded(model, replace(options, target=target, march=None, threads=1), QUICK)

    return compile_


@click.command()
@click.argument("target")
@click.option(
    "--suites", default=OPERATORS, show_default=True, type=names_of(SUITES), help=f"Some of {', '.join(SUITES)}."
)
@click.option("--match", "pattern", default="", help="Only checks whose name this regular expression finds.")
@click.option(
    "--part", default="0/1", show_default=True, type=part, help="K/N: of N equal parts the one numbered K, from 0."
)
@click.option("--seconds", default=600, show_default=True, help="Time limit of a check.")
def main(target: str, suites: tuple[str, ...], pattern: str, part: tuple[int, int], seconds: int) -> None:
    """Do the checks, print what fails and how many of each suite pass; exit 1 if one fails."""
    try:
        find_backend(target)
    except MscError as error:
        raise click.UsageError(str(error)) from error
    counts: Counter[tuple[str, bool]] = Counter()
    for suite, check in chosen(suites, pattern, part, ()):
        failure = reason(lambda check=check: check.run(through(target)), seconds)
        counts[suite, not failure] += 1
        if failure:
            click.echo(f"{suite}: {check.name}: {failure}")
    for suite in suites:
        passed = counts[suite, True]
        click.echo(f"{suite}: {passed} of {passed + counts[suite, False]} pass")
    sys.exit(any(not passed for _, passed in counts))


if __name__ == "__main__":
    main()
