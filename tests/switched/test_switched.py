"""A slice of the suites with each optimisation off: `python -m tests.switched` does all of them."""

import re
from collections.abc import Iterator

import pytest

from msc.backends.registry import find_backend
from tests.switched.report import table
from tests.switched.suites import SUITES
from tests.switched.trying import Check, Tried, tried

SWITCHES = find_backend("cpu").all_switches

SLICE = {
    "node": r"^test_(layer_normalization_2d_axis1_expanded|basic_conv_with_padding|lstm_defaults)$",
    "operations": r"^ms\.(batch_matmul %0, %1 7x33x65)",
    "random graphs": r"^graph 34$",
    "control flow": "",
    "networks": "^(attention|LSTM)$",
    "steps": "^mlp$",
    "open sizes": "^(mean over an open axis|attention)$",
}


def chosen() -> Iterator[tuple[str, Check]]:
    for suite, pattern in SLICE.items():
        yield from ((suite, check) for check in SUITES[suite]() if re.search(pattern, check.name))


@pytest.mark.parametrize(("suite", "check"), [*chosen()], ids=lambda value: getattr(value, "name", value))
def test_right_without_each_optimisation(suite: str, check: Check) -> None:
    outcome = tried(suite, check, [*SWITCHES], seconds=120)
    assert outcome.reasons, outcome.refused
    assert {name: why for name, why in outcome.reasons.items() if why} == {}


def test_the_table_counts_what_passes_of_what_makes_a_difference() -> None:
    outcomes = [Tried("node", "a", {"fusion": "", "sink-views": "wrong"}), Tried("node", "b", {"fusion": ""})]
    rows = table([*outcomes, Tried("node", "c", {}, "refused")]).splitlines()
    assert rows[0] == "| without | node (2) |"
    assert "| `fusion` | 2 of 2 |" in rows
    assert "| `sink-views` | 0 of 1 |" in rows
