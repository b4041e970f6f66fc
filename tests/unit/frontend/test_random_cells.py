"""A few of the random Cells; `python -m tests.random_cells --count 500 --compiled 40` runs many."""

from __future__ import annotations

import pytest

from tests.random_cells.compare import check


@pytest.mark.parametrize("first", range(0, 60, 10))
def test_random_cells(first: int) -> None:
    for seed in range(first, first + 10):
        check(seed)


def test_a_compiled_one() -> None:
    check(7, backend="")
