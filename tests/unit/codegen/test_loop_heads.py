"""Heads of loops: no step beyond the last int64, which C does not define."""

from __future__ import annotations

import pytest

from msc.codegen.c.loops import fits, head_text


@pytest.mark.parametrize(
    ("end", "step", "known"),
    [
        (8, 3, True),
        (None, 1, True),
        (None, 2, False),
        (8, None, False),
        (2**63 - 2, 2, True),
        (2**63 - 1, 2, False),
    ],
)
def test_what_is_known_to_fit(end: int | None, step: int | None, known: bool) -> None:
    assert fits(end, step) is known


def test_the_last_step_goes_to_the_end() -> None:
    assert head_text("i", "0", "n", "4", fits=True) == "for («index» i = 0; i < n; i += 4)"
    text = head_text("i", "0", "n", "4", fits=False)
    assert text == "for («index» i = 0; i < n; i = (uint64_t)(n) - (uint64_t)i > (uint64_t)(4) ? i + 4 : n)"
