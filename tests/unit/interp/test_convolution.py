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
