"""Reductions against PyTorch and NumPy: axes, element types, nothing to reduce."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

Run: TypeAlias = Callable[..., npt.NDArray[Any]]
NUMPY: dict[str, Any] = {"sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min, "mean": np.mean}


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=st.sampled_from(list(NUMPY)), axes=st.sets(st.integers(-3, -1)), keep=st.booleans())
def test_axes(run: Run, name: str, axes: set[int], keep: bool) -> None:
    x = np.random.default_rng(0).standard_normal((2, 3, 4)).astype(np.float32)
    expected = NUMPY[name](x, axis=tuple(axes) or None, keepdims=keep)
    result = run(f"reduce_{name}", x, axis=sorted(axes), keep_dims=keep)
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("name", "neutral"), [("sum", 0), ("prod", 1), ("max", -np.inf), ("min", np.inf)])
def test_nothing_reduces_to_the_neutral_element(run: Run, name: str, neutral: float) -> None:
    np.testing.assert_array_equal(run(f"reduce_{name}", np.zeros((2, 0), np.float32), axis=[1]), [neutral] * 2)


def test_integers_wrap_in_their_own_type(run: Run) -> None:
    np.testing.assert_array_equal(run("reduce_sum", np.array([100, 100], np.int8)), np.int8(-56))


def test_nan_is_the_largest_and_the_smallest(run: Run) -> None:
    x = np.array([1, np.nan, 2], np.float32)
    assert np.isnan(run("reduce_max", x))
    assert np.isnan(run("reduce_min", x))


def test_booleans(run: Run) -> None:
    x = np.array([[True, False], [True, True]])
    np.testing.assert_array_equal(run("reduce_all", x, axis=[1]), [False, True])
    np.testing.assert_array_equal(run("reduce_any", x, axis=[0]), [True, True])


@pytest.mark.parametrize(("last", "expected"), [(False, [1, 0]), (True, [2, 3])])
def test_argmax_picks_the_first_or_the_last(run: Run, last: bool, expected: list[int]) -> None:
    x = np.array([[0, 5, 5, 1], [7, 7, 7, 7]], np.int32)
    result = run("argmax", x, axis=1, select_last=last)
    assert result.dtype == np.int64
    np.testing.assert_array_equal(result, expected)
    np.testing.assert_array_equal(run("argmin", -x, axis=1, select_last=last, keep_dims=True)[:, 0], expected)


@pytest.mark.parametrize(
    ("exclusive", "reverse", "expected"),
    [(False, False, [1, 3, 6]), (True, False, [0, 1, 3]), (False, True, [6, 5, 3]), (True, True, [5, 3, 0])],
)
def test_cumsum(run: Run, exclusive: bool, reverse: bool, expected: list[int]) -> None:
    x = np.array([[1, 2, 3]] * 2, np.int32)
    np.testing.assert_array_equal(run("cumsum", x, axis=1, exclusive=exclusive, reverse=reverse), [expected] * 2)


def test_cumulated_sums_begin_with_zero(run: Run) -> None:
    assert not np.signbit(run("cumsum", np.array([-0.0, -0.0], np.float32))).any()
