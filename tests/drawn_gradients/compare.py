"""Derivatives of a call beside central differences along a direction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import msc
from msc import Tensor
from msc.support.diagnostics import MscError
from tests.drawn_gradients.calls import Call
from tests.special_gradients.evaluating import weights_like


def wrong(call: Call, order: int = 2) -> str | None:
    """What is wrong with the derivatives of a call up to an order, or None if they are right or refused."""
    arrays = call.variables
    if _is_random(call):
        return None

    def total(*values: Tensor) -> Tensor:
        return _weighted(call(*values))

    function: Callable[..., Tensor] = total
    places = tuple(range(len(arrays)))
    narrow = any(r.dtype is msc.float32 for r in call(*map(Tensor, arrays)))
    tolerance = 3e-3 if narrow else 1e-4
    for level in range(1, order + 1):
        gradient = msc.grad(function, places)
        try:
            found = [g.asnumpy() for g in gradient(*map(Tensor, arrays))]
        except MscError:
            return None
        directions = [weights_like(a.shape, 3, np.float64) for a in arrays]
        along = sum(float(np.sum(g * d, dtype=np.float64)) for g, d in zip(found, directions, strict=True))
        exact, error = _difference(function, arrays, directions)
        if not np.isfinite(exact):
            return None
        if not abs(along - exact) <= tolerance * max(1.0, abs(exact)) + 10 * error:
            return f"derivative {level}: {along:.6g} along a direction, differences give {exact:.6g}"
        function = _sum_of(gradient)
    return None


def _is_random(call: Call) -> bool:
    """Whether a function draws numbers: then two calls differ."""
    first, second = (call(*map(Tensor, call.variables)) for _ in range(2))
    return any(not np.array_equal(a.asnumpy(), b.asnumpy(), equal_nan=True) for a, b in zip(first, second, strict=True))


def _sum_of(gradient: Callable[..., Any]) -> Callable[..., Tensor]:
    return lambda *values: _weighted(gradient(*values))


def _weighted(results: Sequence[Tensor]) -> Tensor:
    parts = [
        (r.astype(msc.float64) * Tensor(weights_like(r.shape, k, np.float64))).sum()
        for k, r in enumerate(results)
        if r.size
    ]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def _difference(function: Any, arrays: Sequence[Any], directions: Sequence[Any]) -> tuple[float, float]:
    """The derivative along a direction from two steps, and how far these are apart."""
    found: list[float] = []
    for step in (1e-4, 5e-5):
        ends = [
            float(function(*(Tensor(a + s * d) for a, d in zip(arrays, directions, strict=True))).asnumpy())
            for s in (step, -step)
        ]
        found.append((ends[0] - ends[1]) / (2 * step))
    return found[1], abs(found[0] - found[1])
