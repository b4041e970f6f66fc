"""Gradients beside PyTorch's, at kinks and ties too."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional

import msc
from msc import Tensor, ops

RNG = np.random.default_rng(0)
IMAGE = RNG.integers(-2, 3, (2, 4, 6, 6)).astype(np.float64)
ROWS = RNG.normal(size=(3, 7))
WEIGHT = RNG.normal(size=(6, 2, 3, 3))
LABELS = np.array([0, 3, 6])

PAIRS: dict[str, tuple[Any, Callable[[Any], Any], Callable[[Any], Any]]] = {
    "relu at 0": (IMAGE, ops.relu, torch.relu),
    "abs at 0": (IMAGE, ops.abs, torch.abs),
    "relu6": (IMAGE * 3, ops.relu6, functional.relu6),
    "max pool with ties": (IMAGE, lambda x: ops.max_pool2d(x, 3, 1), lambda x: functional.max_pool2d(x, 3, 1)),
    "max pool with steps": (IMAGE, lambda x: ops.max_pool2d(x, 2), lambda x: functional.max_pool2d(x, 2)),
    "average pool": (IMAGE, lambda x: ops.avg_pool2d(x, 3, 2), lambda x: functional.avg_pool2d(x, 3, 2)),
    "largest with ties": (IMAGE, lambda x: ops.amax(x, 3), lambda x: torch.amax(x, 3)),
    "product with zeros": (IMAGE[0, 0], lambda x: ops.prod(x, 1), lambda x: torch.prod(x, 1)),
    "maximum of equals": (IMAGE, lambda x: ops.maximum(x, x * x), lambda x: torch.maximum(x, x * x)),
    "softmax": (ROWS, lambda x: ops.softmax(x, -1), lambda x: torch.softmax(x, -1)),
    "log softmax": (ROWS, lambda x: ops.log_softmax(x, 0), lambda x: torch.log_softmax(x, 0)),
    "gelu": (ROWS, lambda x: ops.gelu(x, "none"), functional.gelu),
    "cumulative sum": (ROWS, lambda x: ops.cumsum(x, 1), lambda x: torch.cumsum(x, 1)),
    "grouped convolution": (
        IMAGE,
        lambda x: ops.conv2d(x, Tensor(WEIGHT), stride=2, groups=2),
        lambda x: functional.conv2d(x, torch.tensor(WEIGHT), stride=2, groups=2),
    ),
    "cross entropy": (
        ROWS,
        lambda x: ops.cross_entropy(x, Tensor(LABELS.astype(np.int32))),
        lambda x: functional.cross_entropy(x, torch.tensor(LABELS)),
    ),
    "layer norm": (
        ROWS,
        lambda x: ops.layer_norm(x, (7,), Tensor(ROWS[0]), Tensor(ROWS[1]), 1e-5),
        lambda x: functional.layer_norm(x, (7,), torch.tensor(ROWS[0]), torch.tensor(ROWS[1]), 1e-5),
    ),
}


@pytest.mark.parametrize("name", PAIRS)
def test_gradients_are_those_of_pytorch(name: str) -> None:
    data, ours, theirs = PAIRS[name]
    tensor = torch.tensor(data, requires_grad=True)
    expected = theirs(tensor)
    counts = RNG.normal(size=tuple(expected.shape))
    expected.backward(torch.tensor(counts))

    def weighted(x: Any) -> Any:
        value = ours(x)
        value = value[0] if isinstance(value, tuple) else value
        return (value * Tensor(counts)).sum()

    assert tensor.grad is not None
    np.testing.assert_allclose(msc.grad(weighted)(Tensor(data)).asnumpy(), tensor.grad.numpy(), rtol=1e-9, atol=1e-12)
