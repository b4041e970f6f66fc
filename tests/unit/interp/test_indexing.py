"""Operations whose elements are chosen by indices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pytest

from msc.dialects.element_types import element_type
from msc.support.diagnostics import MscError

Run: TypeAlias = Callable[..., npt.NDArray[Any]]
X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_gather_counts_negative_indices_from_the_end(run: Run, axis: int) -> None:
    indices = np.array([[0, -1], [1, -2]], np.int32)
    np.testing.assert_array_equal(run("gather", X, indices, axis=axis), np.take(X, indices, axis))


def test_gather_elements(run: Run) -> None:
    indices = np.array([[[2, 0, -1], [1, 1, 1]]], np.int64)
    expected = np.take_along_axis(X[:1, :2], indices % 4, 2)
    np.testing.assert_array_equal(run("gather_elements", X, indices, axis=2), expected)


@pytest.mark.parametrize("index", [3, -4])
def test_an_index_outside_its_dimension_is_an_error(run: Run, index: int) -> None:
    with pytest.raises(MscError, match=rf"MSC0610.*index {index} .*is outside a dimension of size 3"):
        run("gather", X, np.array([0, index], np.int32), axis=1)


def test_one_hot(run: Run) -> None:
    indices, f32 = np.array([1, 0, 5], np.int32), element_type("f32")
    expected = np.array([[0.5, 2, 0.5], [2, 0.5, 0.5]])
    result = run("one_hot", indices, depth=2, axis=0, on_value=2.0, off_value=0.5, dtype=f32)
    np.testing.assert_array_equal(result, expected)
    np.testing.assert_array_equal(run("one_hot", indices, depth=2, dtype=element_type("i8")), [[0, 1], [1, 0], [0, 0]])


def test_an_empty_iota_takes_no_memory(run: Run) -> None:
    assert run("iota", shape=[1 << 40, 0], axis=0, dtype=element_type("i64")).shape == (1 << 40, 0)


def test_iota(run: Run) -> None:
    result = run("iota", shape=[2, 3], axis=1, dtype=element_type("i16"))
    np.testing.assert_array_equal(result, np.array([[0, 1, 2]] * 2, np.int16))
