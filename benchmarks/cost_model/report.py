"""The tables of docs/evidence/cost-model.md: errors of predicted times, and picks beside the best schedule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp
from pathlib import Path

import numpy as np

from benchmarks.cost_model.corpus import corpora
from benchmarks.cost_model.kernels import Subject, favoured_picks, regret, repeated, subjects
from msc.targets.catalogue import machine_named
from msc.targets.machine import Machine

PAGE = Path(__file__).resolve().parents[2] / "docs" / "evidence" / "cost-model.md"
BEGIN, END = "<!-- errors -->\n", "<!-- end of errors -->"
CLOSE = 1.05
"""Times the fastest measured schedule that a pick may take to count as one of the best."""
NEAR = 2.0
"""Times the fastest, up to which a schedule is one that a decision may hesitate about."""


@dataclass(frozen=True)
class Errors:
    """Of some kernels: relative errors of all schedules and of near ones, and how much slower picks are."""

    kernels: int
    every: tuple[float, ...]
    near: tuple[float, ...]
    picks: tuple[float, ...]
    chosen: tuple[float, ...]
    repeated: tuple[float, ...]
    """Of kernels that were measured more than once: what one measurement picks, in the other."""
    favoured: tuple[float, ...]
    """Picks of those kernels, each in the measurement in which it is closest to the fastest."""

    @staticmethod
    def of(subjects: Sequence[Subject], machine: Machine) -> Errors:
        every: list[float] = []
        near: list[float] = []
        picks: list[float] = []
        chosen: list[float] = []
        for subject in subjects:
            errors, times = subject.errors(machine), subject.microseconds
            relative = [abs(exp(error) - 1) for error in errors]
            every += relative
            near += [e for e, us in zip(relative, times, strict=True) if us <= NEAR * min(times)]
            picks.append(regret(subject.cycles(machine), times))
            chosen.append(times[0] / min(times))
        again = [ratio for subject in subjects for ratio in repeated(subject.entry)]
        favoured = [ratio for subject in subjects for ratio in favoured_picks(subject.entry, subject.cycles(machine))]
        return Errors(len(subjects), *(tuple(found) for found in (every, near, picks, chosen, again, favoured)))


def tables() -> str:
    """Markdown: a table a corpus, with the kernels that figures were fitted to beside those that are held out."""
    return "\n".join(_table(name, list(subjects(corpus, machine_named(name)))) for name, corpus in corpora())


def write() -> None:
    """Put the tables in the page."""
    page = PAGE.read_text(encoding="utf-8")
    before, after = page[: page.index(BEGIN) + len(BEGIN)], page[page.index(END) :]
    PAGE.write_text(before + tables() + after, encoding="utf-8")


def _table(name: str, kernels: Sequence[Subject]) -> str:
    machine = machine_named(name)
    parts = [[s for s in kernels if not s.is_held_out], [s for s in kernels if s.is_held_out]]
    fitted, held = (Errors.of(part, machine) for part in parts)
    rows = [
        ("kernels", str(fitted.kernels), str(held.kernels)),
        ("schedules", str(len(fitted.every)), str(len(held.every))),
        *_quantiles("error", fitted.every, held.every),
        *_quantiles("error, schedules at most twice as slow as the fastest", fitted.near, held.near),
        ("picks within 5 % of the fastest measured", _share(fitted.picks), _share(held.picks)),
        ("a pick's time over the fastest's, median", _ratio(fitted.picks, 50), _ratio(held.picks, 50)),
        ("the same, 90 % of kernels", _ratio(fitted.picks, 90), _ratio(held.picks, 90)),
        ("msc's own schedule within 5 % of the fastest measured", _share(fitted.chosen), _share(held.chosen)),
        ("its time over the fastest's, 90 % of kernels", _ratio(fitted.chosen, 90), _ratio(held.chosen, 90)),
        *_agreement(fitted, held),
    ]
    lines = [f"| `{name}` | fitted to | held out |", "|---|---|---|", *(f"| {' | '.join(row)} |" for row in rows)]
    return "\n".join([*lines, ""])


def _quantiles(title: str, fitted: Sequence[float], held: Sequence[float]) -> list[tuple[str, str, str]]:
    names = ((50, "median"), (75, "75 %"), (90, "90 %"))
    return [
        (f"{title}, {name}", f"{np.percentile(fitted, q):.0%}", f"{np.percentile(held, q):.0%}") for q, name in names
    ]


def _agreement(fitted: Errors, held: Errors) -> list[tuple[str, str, str]]:
    """The most that picks may reach, and picks where differences between measurements count for them."""
    if not (fitted.repeated and held.repeated):
        return []
    title, favoured = (
        "the fastest of one measurement within 5 % of the fastest of another",
        "picks within 5 % in one of them",
    )
    return [
        (title, _share(fitted.repeated), _share(held.repeated)),
        (favoured, _share(fitted.favoured), _share(held.favoured)),
    ]


def _share(ratios: Sequence[float]) -> str:
    return f"{np.mean(np.array(ratios) <= CLOSE):.0%}"


def _ratio(ratios: Sequence[float], quantile: int) -> str:
    return f"{np.percentile(ratios, quantile):.2f}"
