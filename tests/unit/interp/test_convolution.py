"""Convolutions: sizes with padding."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Run: TypeAlias = Callable[..., npt.NDArray[Any]]


def data(*shape: int, seed: int = 0) -> npt.NDArray[np.float32]:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def test_same_padding_with_stride_rounds_up(run: Run) -> None:
    assert run("conv2d", data(1, 2, 7, 8), data(3, 2, 3, 3), pad_mode="same", stride=[2, 3]).shape == (1, 3, 4, 3)


def test_subpixel_convolution_reads_from_where_its_definition_says(run: Run) -> None:
    x, weight, begin = data(1, 2, 5, 6), data(3, 2, 4, 2, 2, 1, seed=1), [2, 1]
    y = run("subpixel_conv", x, weight, begin=begin)
    assert y.shape == (1, 4, 3, 3, 5, 2)
    for o, i, p, j, q in np.ndindex(y.shape[1:]):
        row, column = i + (p + begin[0]) // 3, j + (q + begin[1]) // 2
        window = x[0, :, row : row + 2, column : column + 1]
        np.testing.assert_allclose(y[0, o, i, p, j, q], np.sum(window * weight[p, q, o]), rtol=1e-5, atol=1e-6)
