"""Pooling against PyTorch."""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pytest

torch: Any = importlib.import_module("torch")
Run: TypeAlias = Callable[..., npt.NDArray[Any]]
F: Any = torch.nn.functional

MAXIMUM = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}
AVERAGE = {1: F.avg_pool1d, 2: F.avg_pool2d, 3: F.avg_pool3d}


def data(*shape: int) -> npt.NDArray[np.float32]:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize(
    ("rank", "kernel", "stride", "pad", "ceil"),
    list(itertools.product((1, 2, 3), (2, 3), (1, 2, 3), (0, 1), (False, True))),
)
def test_pooling(run: Run, rank: int, kernel: int, stride: int, pad: int, ceil: bool) -> None:
    x = data(2, 3, *(8, 7, 6)[:rank])
    t = torch.from_numpy(x)
    properties = {"kernel_size": [kernel] * rank, "stride": [stride] * rank, "ceil_mode": ceil}
    properties |= {"pad_mode": "pad", "pad": [pad] * (2 * rank)}
    maximum = MAXIMUM[rank](t, kernel, stride, pad, ceil_mode=ceil).numpy()
    np.testing.assert_array_equal(run(f"max_pool{rank}d", x, **properties), maximum)
    for include in (False, True):
        average = AVERAGE[rank](t, kernel, stride, pad, ceil_mode=ceil, count_include_pad=include).numpy()
        result = run(f"avg_pool{rank}d", x, count_include_pad=include, **properties)
        np.testing.assert_allclose(result, average, rtol=1e-5, atol=1e-6)


def test_dilated_maximum(run: Run) -> None:
    x = data(1, 2, 9, 9)
    expected = F.max_pool2d(torch.from_numpy(x), 3, 2, 0, 2).numpy()
    result = run("max_pool2d", x, kernel_size=[3, 3], stride=[2, 2], dilation=[2, 2])
    np.testing.assert_array_equal(result, expected)


def test_sum_is_mean_times_window(run: Run) -> None:
    x = data(1, 2, 6, 6)
    expected = F.avg_pool2d(torch.from_numpy(x), 3, 2, divisor_override=1).numpy()
    np.testing.assert_allclose(run("sum_pool2d", x, kernel_size=[3, 3], stride=[2, 2]), expected, rtol=1e-5, atol=1e-6)
