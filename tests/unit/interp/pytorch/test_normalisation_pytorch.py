"""Normalisations against PyTorch."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pytest

torch: Any = importlib.import_module("torch")

Run: TypeAlias = Callable[..., npt.NDArray[Any]]
F: Any = torch.nn.functional
X = (np.random.default_rng(0).standard_normal((2, 6, 5, 4)) * 3 + 1).astype(np.float32)
GAMMA, BETA, MEAN = (np.random.default_rng(i).standard_normal(6).astype(np.float32) for i in (1, 2, 3))
T, G, B = map(torch.from_numpy, (X, GAMMA, BETA))


def close(result: npt.NDArray[Any], expected: Any) -> None:
    np.testing.assert_allclose(result, expected.numpy(), rtol=1e-4, atol=1e-5)


def test_batch_norm(run: Run) -> None:
    variance = GAMMA**2 + 0.5
    expected = F.batch_norm(T, torch.from_numpy(MEAN), torch.from_numpy(variance), G, B, eps=1e-3)
    close(run("batch_norm", X, GAMMA, BETA, MEAN, variance, epsilon=1e-3), expected)


@pytest.mark.parametrize("begin", [1, 2, -1])
def test_layer_norm(run: Run, begin: int) -> None:
    tail = X.shape[begin:]
    gamma, beta = (np.random.default_rng(i).standard_normal(tail).astype(np.float32) for i in (1, 2))
    g, b = map(torch.from_numpy, (gamma, beta))
    close(run("layer_norm", X, gamma, beta, begin_norm_axis=begin, epsilon=1e-5), F.layer_norm(T, tail, g, b))
    close(run("layer_norm", X, gamma, begin_norm_axis=begin, epsilon=1e-5), F.layer_norm(T, tail, g))


@pytest.mark.parametrize("begin", [2, -1])
def test_rms_norm(run: Run, begin: int) -> None:
    gamma = np.random.default_rng(1).standard_normal(X.shape[begin:]).astype(np.float32)
    expected = F.rms_norm(T, gamma.shape, torch.from_numpy(gamma), eps=1e-6)
    close(run("rms_norm", X, gamma, begin_norm_axis=begin, epsilon=1e-6), expected)


@pytest.mark.parametrize("groups", [1, 2, 6])
def test_group_norm(run: Run, groups: int) -> None:
    close(run("group_norm", X, GAMMA, BETA, num_groups=groups, epsilon=1e-5), F.group_norm(T, groups, G, B))


def test_instance_norm(run: Run) -> None:
    close(run("instance_norm", X, GAMMA, BETA, epsilon=1e-5), F.instance_norm(T, weight=G, bias=B))


def test_l2_normalize(run: Run) -> None:
    close(run("l2_normalize", X, axis=[1], epsilon=1e-12), F.normalize(T, dim=1))
