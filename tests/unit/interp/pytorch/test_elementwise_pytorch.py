"""Element-wise operations against PyTorch."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pytest

torch: Any = importlib.import_module("torch")
Run: TypeAlias = Callable[..., npt.NDArray[Any]]

EDGES = np.array([0.0, -0.0, 1, -1, 0.5, -0.5, 1.5, 2.5, 88, -88, 1e-30, np.inf, -np.inf, np.nan], np.float32)
SAME_NAME = (
    "neg abs exp expm1 log log1p sqrt rsqrt reciprocal square sin cos tan asin acos atan sinh cosh tanh asinh acosh "
    "atanh erf sigmoid floor ceil round trunc relu"
).split()


@pytest.mark.parametrize("name", SAME_NAME)
def test_unary_operations_agree_with_pytorch(run: Run, name: str) -> None:
    x = np.concatenate([EDGES, np.random.default_rng(0).standard_normal(1000).astype(np.float32) * 3])
    expected = getattr(torch, name)(torch.from_numpy(x)).numpy()
    np.testing.assert_allclose(run(name, x), expected, rtol=1e-5, atol=1e-6)


BINARY = {
    **{name: name for name in ("add", "sub", "mul", "div", "maximum", "minimum", "pow", "atan2")},
    **{"mod": "remainder", "rem": "fmod", "equal": "eq", "not_equal": "ne"},
    **{"less": "lt", "less_equal": "le", "greater": "gt", "greater_equal": "ge"},
}


@pytest.mark.parametrize("name", BINARY)
def test_binary_operations_agree_with_pytorch(run: Run, name: str) -> None:
    finite = EDGES[np.isfinite(EDGES)] if name in ("mod", "rem") else EDGES
    a, b = finite[:, None], finite[None, :]
    expected = getattr(torch, BINARY[name])(torch.from_numpy(a), torch.from_numpy(b)).numpy()
    np.testing.assert_allclose(run(name, a, b), expected, rtol=1e-5, atol=1e-6)
