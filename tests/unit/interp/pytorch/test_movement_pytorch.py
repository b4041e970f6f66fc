"""Operations that move elements, against PyTorch."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Run: TypeAlias = Callable[..., npt.NDArray[Any]]


def test_depth_to_space_column_mode_is_pixel_shuffle(run: Run) -> None:
    torch: Any = importlib.import_module("torch")
    x = np.arange(2 * 8 * 3 * 2, dtype=np.float32).reshape(2, 8, 3, 2)
    expected = torch.nn.functional.pixel_shuffle(torch.from_numpy(x), 2).numpy()
    np.testing.assert_array_equal(run("depth_to_space", x, block_size=2, mode="CRD"), expected)
