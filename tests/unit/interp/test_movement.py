"""Operations that move elements, against NumPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

Run: TypeAlias = Callable[..., npt.NDArray[Any]]
X = np.arange(24, dtype=np.int32).reshape(2, 3, 4)


@pytest.mark.parametrize(
    ("name", "properties", "expected"),
    [
        ("reshape", {"shape": [4, -1]}, X.reshape(4, 6)),
        ("flatten", {"axis": 1}, X.reshape(2, 12)),
        ("flatten", {"axis": 0}, X.reshape(1, 24)),
        ("flatten", {"axis": -1}, X.reshape(6, 4)),
        ("flatten", {"axis": 3}, X.reshape(24, 1)),
        ("expand_dims", {"axis": [0, -1]}, X[None, ..., None]),
        ("transpose", {"perm": [2, 0, 1]}, X.transpose(2, 0, 1)),
        ("transpose", {}, X.T),
        ("broadcast_to", {"shape": [5, 2, -1, 4]}, np.broadcast_to(X, (5, 2, 3, 4))),
        ("tile", {"multiples": [2, 1, 3]}, np.tile(X, (2, 1, 3))),
        ("tile", {"multiples": [2, 1, 1, 1]}, np.tile(X, (2, 1, 1, 1))),
        ("reverse", {"axis": [0, 2]}, X[::-1, :, ::-1]),
        ("dilate", {"interior": [0, 1, 0]}, np.insert(X, [1, 2], 0, axis=1)),
        ("tril", {"diagonal": 1}, np.tril(X, 1)),
        ("triu", {"diagonal": -1}, np.triu(X, -1)),
        ("resize_nearest", {"size": [6, 2]}, X[:, [0, 0, 1, 1, 2, 2]][:, :, [0, 2]]),
        ("resize_nearest", {"size": [3]}, X[:, :, [0, 1, 2]]),
    ],
)
def test_against_numpy(run: Run, name: str, properties: dict[str, Any], expected: npt.NDArray[Any]) -> None:
    np.testing.assert_array_equal(run(name, X, **properties), expected)


def test_windows(run: Run) -> None:
    x = np.arange(2 * 5 * 4).reshape(1, 2, 5, 4)
    y = run("windows", x, size=[3, 2], stride=[2, 1])
    assert y.shape == (1, 2, 2, 3, 3, 2)
    for i, j in np.ndindex(2, 3):
        np.testing.assert_array_equal(y[:, :, i, :, j], x[:, :, 2 * i : 2 * i + 3, j : j + 2])


def test_transform_axis_reads_nothing_at_zeros(run: Run) -> None:
    x = np.array([[1.0, np.inf], [2.0, 5.0]], np.float32)
    y = run("transform_axis", x, axis=0, matrix=[1.0, 0.0, 0.0, 2.0, -1.0, 3.0])
    np.testing.assert_array_equal(y, np.array([[1, np.inf], [4, 10], [5, -np.inf]], np.float32))
    np.testing.assert_array_equal(run("transform_axis", x[1:], axis=1, matrix=[0.0, 1.0]), [[5]])


def test_squeeze(run: Run) -> None:
    x = np.zeros((1, 3, 1), np.float32)
    assert run("squeeze", x).shape == (3,)
    assert run("squeeze", x, axis=[-1]).shape == (1, 3)


def test_concat_stack_and_split(run: Run, run_several: Callable[..., Sequence[npt.NDArray[Any]]]) -> None:
    np.testing.assert_array_equal(run("concat", X, X[:, :1], axis=1), np.concatenate([X, X[:, :1]], 1))
    np.testing.assert_array_equal(run("stack", X, X, axis=-1), np.stack([X, X], -1))
    first, second = run_several("split", X, axis=-1, sizes=[1, 3])
    np.testing.assert_array_equal(first, X[..., :1])
    np.testing.assert_array_equal(second, X[..., 1:])


@settings(deadline=None, max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(begin=st.integers(-7, 7), end=st.integers(-7, 7), stride=st.integers(-3, 3).filter(bool))
def test_slice_is_pythons(run: Run, begin: int, end: int, stride: int) -> None:
    x = np.arange(5, dtype=np.float32)
    np.testing.assert_array_equal(run("slice", x, begin=[begin], end=[end], strides=[stride]), x[begin:end:stride])


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "wrap"])
def test_pad(run: Run, mode: Any) -> None:
    widths = [(1, 0), (0, 2), (3, 1)]
    x = X.astype(np.float32)
    expected = np.pad(x, widths, constant_values=-1.5) if mode == "constant" else np.pad(x, widths, mode=mode)
    np.testing.assert_array_equal(run("pad", x, pad=[1, 0, 3, 0, 2, 1], mode=mode, value=-1.5), expected)


@pytest.mark.parametrize("mode", ["DCR", "CRD"])
def test_space_to_depth_undoes_depth_to_space(run: Run, mode: str) -> None:
    x = np.arange(2 * 8 * 3 * 2, dtype=np.float32).reshape(2, 8, 3, 2)
    there = run("depth_to_space", x, block_size=2, mode=mode)
    assert there.shape == (2, 2, 6, 4)
    np.testing.assert_array_equal(run("space_to_depth", there, block_size=2, mode=mode), x)
