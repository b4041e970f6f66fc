"""What a plan does otherwise, in words."""

from dataclasses import replace

import pytest

from msc.poly.plan import Plan, from_lines
from msc.poly.plan_changes import described_change

LINES = (
    "oc extent 16 tile 16 vector: S0.1 S1.1",
    "oh extent 10: S0.2 S1.2",
    "ow extent 10 tile 5: S0.3 S1.3",
    "do S0",
    "do S1 over kh extent 5: S1.4, kw extent 5: S1.5",
)


def plan(*changes: tuple[str, str], order: tuple[int, ...] = (0, 1, 2)) -> Plan:
    text = "\n".join([*(LINES[k] for k in order), *LINES[3:]])
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return from_lines(text.splitlines())


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (plan(), "the same"),
        (plan(("tile 5", "tile 10")), "ow tile 10"),
        (plan((" tile 5", ""), ("oh extent 10", "oh extent 10 tile 2")), "oh tile 2, ow not tiled"),
        (plan(order=(1, 0, 2)), "order: oh, oc, ow"),
        (plan(("oh extent 10", "oh extent 10 parallel"), order=(1, 0, 2)), "order: oh, oc, ow, threads along oh"),
        (plan((" tile 16 vector", ""), ("tile 5", "tile 5 vector")), "oc not tiled, vectors along ow"),
        (plan((" vector", "")), "no vectors"),
        (plan(("vector", "vector rest 1 along ow")), "rest of oc along ow"),
        (
            plan(("kh extent 5: S1.4, kw extent 5: S1.5", "kw extent 5: S1.5, kh extent 5: S1.4")),
            "order of S1: kw, kh",
        ),
    ],
)
def test_what_another_plan_does_otherwise(other: Plan, words: str) -> None:
    assert described_change(plan(), other) == words


def test_threads_on_none() -> None:
    shared = plan(("oh extent 10", "oh extent 10 parallel"))
    alone = tuple(replace(m, parallel=False) for m in shared.band)
    assert described_change(shared, replace(shared, band=alone)) == "one thread"


def test_a_rest_that_is_none_any_more() -> None:
    assert described_change(plan(("vector", "vector rest 1 along ow")), plan()) == "oc without a rest"
