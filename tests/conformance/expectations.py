"""The file of cases that do not pass, each with its reason: a ratchet, since a case in it that passes is an error too.

A line is `executor | case | reason`, with `*` for all executors and `#` for comments.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.conformance.running import Outcome

FILE = Path(__file__).with_name("expected_failures.txt")
HEADER = """# Cases of the ONNX conformance suite that msc does not pass, with the reason; one that passes is an error.
# Written by `python -m tests.conformance --write-expectations`: executor | case | reason
"""


@dataclass(frozen=True)
class Surprise:
    """A case that did not go as the file says."""

    name: str
    text: str


@cache
def read_expectations(executor: str) -> dict[str, str]:
    """Case -> reason, for an executor."""
    lines = [line for line in FILE.read_text("utf-8").splitlines() if line and not line.startswith("#")]
    rows = [[part.strip() for part in line.split("|", 2)] for line in lines]
    return {name: reason for of, name, reason in rows if of in ("*", executor)}


def surprises(outcomes: Iterable[Outcome], executor: str) -> list[Surprise]:
    """What fails and should pass, and what passes and should fail."""
    expected = read_expectations(executor)
    found: list[Surprise] = []
    for outcome in outcomes:
        if outcome.passed and outcome.name in expected:
            found.append(Surprise(outcome.name, "passes now: take it out of the file"))
        elif not outcome.passed and outcome.name not in expected:
            found.append(Surprise(outcome.name, outcome.reason))
    return found


def write_expectations(results: Mapping[str, Sequence[Outcome]]) -> None:
    """Write the file from outcomes by executor; what every executor fails for one reason stands once."""
    rows: dict[tuple[str, str], list[str]] = {}
    for executor, outcomes in results.items():
        for outcome in outcomes:
            if not outcome.passed:
                rows.setdefault((outcome.name, short_reason(outcome.reason)), []).append(executor)
    everywhere = len(results)
    lines = [
        f"{'*' if len(of) == everywhere > 1 else executor} | {name} | {reason}"
        for (name, reason), of in sorted(rows.items())
        for executor in (of[:1] if len(of) == everywhere > 1 else of)
    ]
    FILE.write_text(HEADER + "\n".join(lines) + "\n", "utf-8")


def short_reason(reason: str) -> str:
    """A reason without the numbers of one run."""
    if reason.startswith("AssertionError: Not equal to tolerance"):
        return "the values differ by more than the case's tolerance"
    return " ".join(reason.replace("|", "/").split())[:160]
