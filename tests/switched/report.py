"""The tables of docs/evidence/without-optimisations.md: how many checks differ, and how many pass without each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.pages import write_marked
from msc.backends.registry import find_backend
from tests.switched.trying import Tried

SWITCHES = find_backend("cpu").all_switches

PAGE = Path(__file__).parents[2] / "docs" / "evidence" / "without-optimisations.md"


def table(outcomes: Sequence[Tried], names: Sequence[str] = (*SWITCHES,)) -> str:
    """A row for each optimisation, a column for each suite: checks that pass of those whose C is another without it."""
    suites = list(dict.fromkeys(outcome.suite for outcome in outcomes))
    counts = {suite: sum(o.suite == suite and not o.refused for o in outcomes) for suite in suites}
    head = ["without", *(f"{suite} ({count})" for suite, count in counts.items())]
    rows = [[f"`{name}`", *(_cell(outcomes, suite, name) for suite in suites)] for name in names]
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ["---"] + ["---:"] * len(suites), *rows))


def _cell(outcomes: Sequence[Tried], suite: str, name: str) -> str:
    reasons = [o.reasons[name] for o in outcomes if o.suite == suite and name in o.reasons]
    return f"{reasons.count('')} of {len(reasons)}"


def write_page(outcomes: Sequence[Tried], names: Sequence[str], mark: str) -> None:
    """Put the table of some optimisations into the page, between its marks."""
    write_marked(PAGE, mark, table(outcomes, names))
