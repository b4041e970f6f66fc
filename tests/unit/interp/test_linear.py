"""Matrix products: transposition, batch broadcasting, element types; the dense layer."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pytest

Run: TypeAlias = Callable[..., npt.NDArray[Any]]


def data(*shape: int) -> npt.NDArray[np.float32]:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize(("left", "right"), list(itertools.product((False, True), repeat=2)))
def test_transposed_operands(run: Run, left: bool, right: bool) -> None:
    a, b = data(5, 3) if left else data(3, 5), data(4, 5) if right else data(5, 4)
    expected = (a.T if left else a).astype(np.float64) @ (b.T if right else b)
    np.testing.assert_allclose(run("matmul", a, b, transpose_a=left, transpose_b=right), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("left", "right"), [((2, 3), (2, 3)), ((2, 1), (1, 3)), ((), (2,)), ((3,), (2, 1))])
def test_batches_broadcast(run: Run, left: tuple[int, ...], right: tuple[int, ...]) -> None:
    a, b = data(*left, 3, 5), data(*right, 5, 4)
    np.testing.assert_allclose(run("batch_matmul", a, b), np.matmul(a.astype(np.float64), b), rtol=1e-5, atol=1e-5)


def test_integers_wrap(run: Run) -> None:
    a = np.full((1, 4), 64, np.int8)
    np.testing.assert_array_equal(run("matmul", a, a.T), np.array([[64 * 64 * 4]]).astype(np.int8))


def test_empty_inner_dimension_gives_zeros(run: Run) -> None:
    np.testing.assert_array_equal(run("matmul", data(2, 0), data(0, 3)), np.zeros((2, 3)))


@pytest.mark.parametrize("lead", [(4,), (2, 4), (2, 3, 4)])
def test_dense(run: Run, lead: tuple[int, ...]) -> None:
    x, w, b = data(*lead, 6), data(5, 6), data(5)
    np.testing.assert_allclose(run("dense", x, w, b), x.astype(np.float64) @ w.T + b, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(run("dense", x, w), x.astype(np.float64) @ w.T, rtol=1e-5, atol=1e-5)
