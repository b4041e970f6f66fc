"""Pooling: integers, NaN, whole images."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Run: TypeAlias = Callable[..., npt.NDArray[Any]]


def data(*shape: int) -> npt.NDArray[np.float32]:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def test_padding_never_wins_in_integers(run: Run) -> None:
    x = np.full((1, 1, 3), -100, np.int8)
    result = run("max_pool1d", x, kernel_size=[2], pad_mode="pad", pad=[1, 1])
    np.testing.assert_array_equal(result, np.full((1, 1, 4), -100))


def test_nan_wins(run: Run) -> None:
    x = np.array([[[1, np.nan, 2, 3]]], np.float32)
    np.testing.assert_array_equal(run("max_pool1d", x, kernel_size=[2]), np.array([[[np.nan, np.nan, 3]]], np.float32))


def test_global_pools(run: Run) -> None:
    x = data(2, 3, 5, 4)
    np.testing.assert_allclose(run("global_avg_pool", x), x.mean((2, 3), keepdims=True), rtol=1e-6)
    np.testing.assert_array_equal(run("global_max_pool", x), x.max((2, 3), keepdims=True))
