"""Distributions of whole numbers."""

# Values of user programs are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownLambdaType=false, reportUnnecessaryComparison=false, reportUnnecessaryIsInstance=false
# pyright: reportUnknownParameterType=false, reportPrivateUsage=false, reportUnsupportedDunderAll=false

from __future__ import annotations

from typing import Any

import numpy as np

from msc import ops
from msc.frontend import dtypes
from msc.frontend.tensor import Tensor
from msc.nn.probability.base import Distribution
from msc.ops import random

__all__ = ["Bernoulli", "Categorical", "Geometric", "Poisson"]


class Bernoulli(Distribution):
    """1 with a chance, 0 otherwise."""

    PARAMETERS = ("probs",)

    def __init__(
        self, probs: Any = None, seed: int | None = None, dtype: Any = dtypes.int32, name: str = "Bernoulli"
    ) -> None:
        super().__init__({"probs": probs}, seed, dtype, name)

    def _log_prob(self, x: Tensor, probs: Tensor) -> Tensor:
        return x * ops.log(probs) + (1.0 - x) * ops.log(1.0 - probs)

    def _cdf(self, x: Tensor, probs: Tensor) -> Tensor:
        return ops.where(x < 0, 0.0, ops.where(x < 1, 1.0 - probs, 1.0))

    def _mean(self, probs: Tensor) -> Tensor:
        return probs

    def _mode(self, probs: Tensor) -> Tensor:
        return ops.cast(ops.cast(probs > 0.5, dtypes.int32), self.dtype)

    def _var(self, probs: Tensor) -> Tensor:
        return probs * (1.0 - probs)

    def _entropy(self, probs: Tensor) -> Tensor:
        return -probs * ops.log(probs) - (1.0 - probs) * ops.log(1.0 - probs)

    def _kl(self, probs: Tensor, other: Tensor) -> Tensor:
        return probs * ops.log(probs / other) + (1.0 - probs) * ops.log((1.0 - probs) / (1.0 - other))

    def _draw(self, size: Any, probs: Tensor) -> Tensor:
        return ops.cast(ops.rand(size, seed=self.seed or None) < probs, dtypes.float32)


class Geometric(Distribution):
    """How many failures come before the first success."""

    PARAMETERS = ("probs",)

    def __init__(
        self, probs: Any = None, seed: int | None = None, dtype: Any = dtypes.int32, name: str = "Geometric"
    ) -> None:
        super().__init__({"probs": probs}, seed, dtype, name)

    def _log_prob(self, x: Tensor, probs: Tensor) -> Tensor:
        return ops.where(x < 0, float("-inf"), ops.floor(x) * ops.log(1.0 - probs) + ops.log(probs))

    def _cdf(self, x: Tensor, probs: Tensor) -> Tensor:
        return ops.where(x < 0, 0.0, 1.0 - ops.pow(1.0 - probs, ops.floor(x) + 1.0))

    def _mean(self, probs: Tensor) -> Tensor:
        return (1.0 - probs) / probs

    def _mode(self, probs: Tensor) -> Tensor:
        return ops.zeros_like(probs)

    def _var(self, probs: Tensor) -> Tensor:
        return (1.0 - probs) / ops.square(probs)

    def _entropy(self, probs: Tensor) -> Tensor:
        return Bernoulli()._entropy(probs) / probs

    def _kl(self, probs: Tensor, other: Tensor) -> Tensor:
        return ops.log(probs / other) + (1.0 / probs - 1.0) * ops.log((1.0 - probs) / (1.0 - other))

    def _draw(self, size: Any, probs: Tensor) -> Tensor:
        return ops.floor(ops.log(self._uniform(size)) / ops.log(1.0 - probs))


class Categorical(Distribution):
    """Numbers of categories, with chances along the last axis."""

    PARAMETERS = ("probs",)

    def __init__(
        self, probs: Any = None, seed: int | None = None, dtype: Any = dtypes.int32, name: str = "Categorical"
    ) -> None:
        super().__init__({"probs": probs}, seed, dtype, name)

    def _log_prob(self, x: Tensor, probs: Tensor) -> Tensor:
        index = ops.expand_dims(ops.cast(x, dtypes.int64), -1)
        lead = tuple(np.broadcast_shapes(index.shape[:-1], probs.shape[:-1]))
        table = ops.broadcast_to(ops.log(probs), (*lead, probs.shape[-1]))
        return ops.squeeze(ops.gather_elements(table, -1, ops.broadcast_to(index, (*lead, 1))), -1)

    def _cdf(self, x: Tensor, probs: Tensor) -> Tensor:
        below = ops.expand_dims(x, -1) >= ops.arange(probs.shape[-1]).astype(dtypes.float32)
        return ops.sum(ops.where(below, probs, 0.0), -1)

    def _mean(self, probs: Tensor) -> Tensor:
        return ops.sum(probs * ops.arange(probs.shape[-1]).astype(dtypes.float32), -1)

    def _mode(self, probs: Tensor) -> Tensor:
        return ops.cast(ops.argmax(probs, -1), self.dtype)

    def _var(self, probs: Tensor) -> Tensor:
        numbers = ops.arange(probs.shape[-1]).astype(dtypes.float32)
        return ops.sum(probs * ops.square(numbers), -1) - ops.square(self._mean(probs))

    def _entropy(self, probs: Tensor) -> Tensor:
        return -ops.sum(ops.xlogy(probs, probs), -1)

    def _kl(self, probs: Tensor, other: Tensor) -> Tensor:
        return ops.sum(probs * ops.log(probs / other), -1)

    def sample(self, shape: Any = (), *args: Any, **keywords: Any) -> Tensor:
        (probs,) = self._arguments(args, keywords)
        size = (*tuple(shape), *probs.shape[:-1])
        borders = ops.cumsum(probs, -1)
        drawn = ops.expand_dims(ops.rand(size, seed=self.seed or None), -1)
        return ops.cast(ops.sum(ops.cast(drawn >= borders, dtypes.int32), -1), self.dtype)


class Poisson(Distribution):
    """Poisson's distribution."""

    PARAMETERS = ("rate",)

    def __init__(
        self, rate: Any = None, seed: int | None = None, dtype: Any = dtypes.float32, name: str = "Poisson"
    ) -> None:
        super().__init__({"rate": rate}, seed, dtype, name)

    def _log_prob(self, x: Tensor, rate: Tensor) -> Tensor:
        return x * ops.log(rate) - rate - ops.lgamma(x + 1.0)

    def _cdf(self, x: Tensor, rate: Tensor) -> Tensor:
        return ops.where(x < 0, 0.0, ops.igammac(ops.floor(ops.relu(x)) + 1.0, rate + ops.zeros_like(x)))

    def _mean(self, rate: Tensor) -> Tensor:
        return rate

    _var = _mean

    def _mode(self, rate: Tensor) -> Tensor:
        return ops.floor(rate)

    def _draw(self, size: Any, rate: Tensor) -> Tensor:
        mean = np.asarray(rate)
        return random.drawn("Poisson", self.seed, lambda draws: draws.poisson(mean, size), dtypes.float32)
