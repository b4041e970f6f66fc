"""Convolutions against PyTorch: ranks, strides, dilation, groups, padding, transposed."""

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

CONVOLVE = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
TRANSPOSE = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}


def data(*shape: int, seed: int = 0) -> npt.NDArray[np.float32]:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize(
    ("rank", "stride", "dilation", "group", "bias"),
    list(itertools.product((1, 2, 3), (1, 2), (1, 2), (1, 2, 4), (False, True))),
)
def test_convolution(run: Run, rank: int, stride: int, dilation: int, group: int, bias: bool) -> None:
    x, w = data(2, 4, *(11, 9, 8)[:rank]), data(8, 4 // group, *(3, 2, 3)[:rank], seed=1)
    b = [data(8, seed=2)] if bias else []
    pads = [(0, 1), (2, 1), (1, 0)][:rank]
    padded = F.pad(torch.from_numpy(x), [p for pair in reversed(pads) for p in pair])
    tensors = [torch.from_numpy(a) for a in (w, *b)]
    expected = CONVOLVE[rank](padded, *tensors, stride=stride, dilation=dilation, groups=group).numpy()
    properties = {"stride": [stride] * rank, "dilation": [dilation] * rank, "group": group}
    flat = [p for pair in pads for p in pair]
    result = run(f"conv{rank}d", x, w, *b, pad_mode="pad", pad=flat, **properties)
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("size", "kernel"), list(itertools.product((7, 8), (1, 2, 3, 4))))
def test_same_padding_puts_the_odd_one_after(run: Run, size: int, kernel: int) -> None:
    x, w = data(1, 2, size, size), data(3, 2, kernel, kernel)
    before = (kernel - 1) // 2
    t = F.pad(torch.from_numpy(x), [before, kernel - 1 - before] * 2)
    expected = F.conv2d(t, torch.from_numpy(w)).numpy()
    np.testing.assert_allclose(run("conv2d", x, w, pad_mode="same"), expected, rtol=1e-4, atol=1e-4)


TRANSPOSED = [
    case
    for case in itertools.product((1, 2, 3), (1, 3), (1, 2), (1, 2), (0, 1))
    if case[4] < max(case[1], case[2])  # PyTorch takes no other output padding
]


@pytest.mark.parametrize(("rank", "stride", "dilation", "group", "extra"), TRANSPOSED)
def test_transposed_convolution(run: Run, rank: int, stride: int, dilation: int, group: int, extra: int) -> None:
    x, w, b = data(2, 4, *(5, 4, 3)[:rank]), data(4, 3, *(3, 2, 3)[:rank], seed=1), data(3 * group, seed=2)
    tensors = map(torch.from_numpy, (x, w, b))
    options = {"stride": stride, "dilation": dilation, "groups": group, "padding": 1, "output_padding": extra}
    expected = TRANSPOSE[rank](*tensors, **options).numpy()
    properties = {"stride": [stride] * rank, "dilation": [dilation] * rank, "output_padding": [extra] * rank}
    result = run(f"conv{rank}d_transpose", x, w, b, pad_mode="pad", pad=[1] * (2 * rank), group=group, **properties)
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("stride", "kernel"), [(1, 3), (2, 3), (3, 2), (2, 4)])
def test_transposed_convolution_with_same_padding_multiplies_sizes(run: Run, stride: int, kernel: int) -> None:
    x, w = data(1, 2, 5, 4), data(2, 3, kernel, kernel)
    result = run("conv2d_transpose", x, w, pad_mode="same", stride=[stride, stride])
    assert result.shape == (1, 3, 5 * stride, 4 * stride)
    full = F.conv_transpose2d(torch.from_numpy(x), torch.from_numpy(w), stride=stride).numpy()
    cut = max(kernel - stride, 0) // 2
    inside = full[:, :, cut : cut + 5 * stride, cut : cut + 4 * stride]
    np.testing.assert_allclose(result[:, :, : inside.shape[2], : inside.shape[3]], inside, rtol=1e-4, atol=1e-4)


def test_integers_are_exact(run: Run) -> None:
    x, w = np.arange(2 * 36, dtype=np.int32).reshape(1, 2, 6, 6), np.arange(2 * 9, dtype=np.int32).reshape(1, 2, 3, 3)
    expected = F.conv2d(torch.from_numpy(x).double(), torch.from_numpy(w).double()).numpy()
    np.testing.assert_array_equal(run("conv2d", x, w), expected)
