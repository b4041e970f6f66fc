"""Activations against PyTorch."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pytest

torch: Any = importlib.import_module("torch")
Run: TypeAlias = Callable[..., npt.NDArray[Any]]

X = np.concatenate([np.linspace(-12, 12, 997), [0.0, -0.0, 3, -3, 6, 100, -100, np.nan]]).astype(np.float32)
F: Any = torch.nn.functional
CASES: dict[str, tuple[dict[str, float], Callable[[Any], Any]]] = {
    "gelu": ({}, F.gelu),
    "silu": ({}, F.silu),
    "relu6": ({}, F.relu6),
    "elu": ({"alpha": 0.7}, lambda x: F.elu(x, 0.7)),
    "selu": ({}, F.selu),
    "celu": ({"alpha": 1.3}, lambda x: F.celu(x, 1.3)),
    "mish": ({}, F.mish),
    "softsign": ({}, F.softsign),
    "softplus": ({}, F.softplus),
    "leaky_relu": ({"alpha": 0.1}, lambda x: F.leaky_relu(x, 0.1)),
    "hard_sigmoid": ({}, F.hardsigmoid),
    "hard_swish": ({}, F.hardswish),
    "clip": ({"min": -1.0, "max": 2.0}, lambda x: torch.clamp(x, -1.0, 2.0)),
}


@pytest.mark.parametrize("name", CASES)
def test_agrees_with_pytorch(run: Run, name: str) -> None:
    properties, function = CASES[name]
    expected = function(torch.from_numpy(X)).numpy()
    np.testing.assert_allclose(run(name, X, **properties), expected, rtol=2e-5, atol=2e-6)


def test_tanh_approximation_of_gelu(run: Run) -> None:
    expected = F.gelu(torch.from_numpy(X), approximate="tanh").numpy()
    np.testing.assert_allclose(run("gelu", X, approximate="tanh"), expected, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_softmax(run: Run, axis: int) -> None:
    x = np.random.default_rng(0).standard_normal((3, 4, 5)).astype(np.float32) * 50
    t = torch.from_numpy(x)
    np.testing.assert_allclose(run("softmax", x, axis=axis), F.softmax(t, axis).numpy(), rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(run("log_softmax", x, axis=axis), F.log_softmax(t, axis).numpy(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("slope", [np.array([0.25], np.float32), np.array([0.1, 0.2, 0.3], np.float32)])
def test_prelu_runs_along_channels(run: Run, slope: Any) -> None:
    x = np.random.default_rng(0).standard_normal((2, 3, 4)).astype(np.float32)
    expected = F.prelu(torch.from_numpy(x), torch.from_numpy(slope)).numpy()
    np.testing.assert_array_equal(run("prelu", x, slope), expected)
