"""Gradients of a few random Cells; `python -m tests.random_gradients --count 300` runs many."""

from __future__ import annotations

import numpy as np
import pytest

from tests.random_gradients.compare import check


@pytest.mark.parametrize("first", range(0, 40, 10))
def test_random_gradients(first: int) -> None:
    for seed in range(first, first + 10):
        check(seed)


def test_a_compiled_one() -> None:
    check(3, backend="", dtype=np.float32)
