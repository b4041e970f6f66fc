"""`ms.argsort`: ties keep their order, NaN is as infinity."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pytest

Run: TypeAlias = Callable[..., npt.NDArray[Any]]
X = np.array([[2, np.nan, -0.0, np.inf, 0, 2]], np.float32)


@pytest.mark.parametrize(("descending", "expected"), [(False, [2, 4, 0, 5, 1, 3]), (True, [1, 3, 0, 5, 2, 4])])
def test_order(run: Run, descending: bool, expected: list[int]) -> None:
    np.testing.assert_array_equal(run("argsort", X, descending=descending), [expected])
    np.testing.assert_array_equal(run("argsort", X.T, axis=0, count=2, descending=descending), np.c_[expected[:2]])


def test_ends_of_integers(run: Run) -> None:
    x = np.array([0, -128, 127, -128], np.int8)
    np.testing.assert_array_equal(run("argsort", x, descending=True), [2, 0, 1, 3])
    np.testing.assert_array_equal(run("argsort", x.view(np.uint8)), [0, 2, 1, 3])
