"""Distributions: chances, logs of them, moments, entropies, divergences and samples.

Every method takes the parameters as well, in place of those of the object: `Normal().log_prob(x, mean, sd)`.
"""

# Values of user programs are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownLambdaType=false, reportUnnecessaryComparison=false, reportUnnecessaryIsInstance=false
# pyright: reportUnknownParameterType=false, reportPrivateUsage=false, reportUnsupportedDunderAll=false

from __future__ import annotations

import math
from typing import Any

import numpy as np

from msc import ops
from msc.frontend import dtypes
from msc.frontend.tensor import Tensor
from msc.nn.probability.base import Distribution, as_numbers
from msc.nn.probability.bijector import Bijector
from msc.nn.probability.discrete import Bernoulli, Categorical, Geometric, Poisson
from msc.ops import random

__all__ = [
    "Bernoulli", "Beta", "Categorical", "Cauchy", "Distribution", "Exponential", "Gamma", "Geometric", "Gumbel",
    "HalfNormal", "Laplace", "LogNormal", "Logistic", "Normal", "Poisson", "StudentT", "TransformedDistribution",
    "Uniform",
]  # fmt: skip

_HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)
_EULER = 0.5772156649015329


class Normal(Distribution):
    """The normal distribution."""

    PARAMETERS = ("mean", "sd")

    def __init__(
        self,
        mean: Any = None,
        sd: Any = None,
        seed: int | None = None,
        dtype: Any = dtypes.float32,
        name: str = "Normal",
    ) -> None:
        super().__init__({"mean": mean, "sd": sd}, seed, dtype, name)

    def _log_prob(self, x: Tensor, mean: Tensor, sd: Tensor) -> Tensor:
        return -ops.square((x - mean) / sd) * 0.5 - ops.log(sd) - _HALF_LOG_2PI

    def _cdf(self, x: Tensor, mean: Tensor, sd: Tensor) -> Tensor:
        return ops.erfc((mean - x) / (sd * math.sqrt(2))) * 0.5

    def _mean(self, mean: Tensor, sd: Tensor) -> Tensor:
        return mean + ops.zeros_like(sd)

    _mode = _mean

    def _var(self, mean: Tensor, sd: Tensor) -> Tensor:
        return ops.square(sd) + ops.zeros_like(mean)

    def _entropy(self, mean: Tensor, sd: Tensor) -> Tensor:
        return ops.log(sd) + (0.5 + _HALF_LOG_2PI) + ops.zeros_like(mean)

    def _kl(self, mean: Tensor, sd: Tensor, other: Tensor, width: Tensor) -> Tensor:
        return ops.square((mean - other) / width) * 0.5 + ops.expm1(ops.log(sd / width) * 2) * 0.5 - ops.log(sd / width)

    def _draw(self, size: Any, mean: Tensor, sd: Tensor) -> Tensor:
        return ops.randn(size, seed=self.seed or None) * sd + mean


class LogNormal(Distribution):
    """What e to a normal number is distributed as."""

    PARAMETERS = ("loc", "scale")

    def __init__(
        self,
        loc: Any = None,
        scale: Any = None,
        seed: int | None = 0,
        dtype: Any = dtypes.float32,
        name: str = "LogNormal",
    ) -> None:
        super().__init__({"loc": loc, "scale": scale}, seed, dtype, name)

    def _log_prob(self, x: Tensor, loc: Tensor, scale: Tensor) -> Tensor:
        return Normal()._log_prob(ops.log(x), loc, scale) - ops.log(x)

    def _cdf(self, x: Tensor, loc: Tensor, scale: Tensor) -> Tensor:
        return Normal()._cdf(ops.log(x), loc, scale)

    def _mean(self, loc: Tensor, scale: Tensor) -> Tensor:
        return ops.exp(loc + ops.square(scale) * 0.5)

    def _mode(self, loc: Tensor, scale: Tensor) -> Tensor:
        return ops.exp(loc - ops.square(scale))

    def _var(self, loc: Tensor, scale: Tensor) -> Tensor:
        return ops.expm1(ops.square(scale)) * ops.exp(loc * 2 + ops.square(scale))

    def _entropy(self, loc: Tensor, scale: Tensor) -> Tensor:
        return Normal()._entropy(loc, scale) + loc

    def _kl(self, loc: Tensor, scale: Tensor, other: Tensor, width: Tensor) -> Tensor:
        return Normal()._kl(loc, scale, other, width)

    def _draw(self, size: Any, loc: Tensor, scale: Tensor) -> Tensor:
        return ops.exp(ops.randn(size, seed=self.seed or None) * scale + loc)


class HalfNormal(Distribution):
    """The size of a normal number, from the mean on."""

    PARAMETERS = ("mean", "sd")

    def __init__(
        self,
        mean: Any = None,
        sd: Any = None,
        seed: int | None = None,
        dtype: Any = dtypes.float32,
        name: str = "HalfNormal",
    ) -> None:
        super().__init__({"mean": mean, "sd": sd}, seed, dtype, name)

    def _log_prob(self, x: Tensor, mean: Tensor, sd: Tensor) -> Tensor:
        return ops.where(x < mean, float("-inf"), Normal()._log_prob(x, mean, sd) + math.log(2))

    def _draw(self, size: Any, mean: Tensor, sd: Tensor) -> Tensor:
        return ops.abs(ops.randn(size, seed=self.seed or None)) * sd + mean


class Uniform(Distribution):
    """The uniform distribution in [low, high)."""

    PARAMETERS = ("low", "high")

    def __init__(
        self,
        low: Any = None,
        high: Any = None,
        seed: int | None = None,
        dtype: Any = dtypes.float32,
        name: str = "Uniform",
    ) -> None:
        super().__init__({"low": low, "high": high}, seed, dtype, name)

    def _log_prob(self, x: Tensor, low: Tensor, high: Tensor) -> Tensor:
        inside = ops.logical_and(x >= low, x <= high)
        return ops.where(inside, -ops.log(high - low), float("-inf"))

    def _cdf(self, x: Tensor, low: Tensor, high: Tensor) -> Tensor:
        return ops.clamp((x - low) / (high - low), 0.0, 1.0)

    def _mean(self, low: Tensor, high: Tensor) -> Tensor:
        return (low + high) * 0.5

    def _var(self, low: Tensor, high: Tensor) -> Tensor:
        return ops.square(high - low) / 12.0

    def _entropy(self, low: Tensor, high: Tensor) -> Tensor:
        return ops.log(high - low)

    def _kl(self, low: Tensor, high: Tensor, other: Tensor, top: Tensor) -> Tensor:
        inside = ops.logical_and(other <= low, high <= top)
        return ops.where(inside, ops.log((top - other) / (high - low)), float("inf"))

    def _draw(self, size: Any, low: Tensor, high: Tensor) -> Tensor:
        return ops.rand(size, seed=self.seed or None) * (high - low) + low


class Exponential(Distribution):
    """The exponential distribution."""

    PARAMETERS = ("rate",)

    def __init__(
        self, rate: Any = None, seed: int | None = None, dtype: Any = dtypes.float32, name: str = "Exponential"
    ) -> None:
        super().__init__({"rate": rate}, seed, dtype, name)

    def _log_prob(self, x: Tensor, rate: Tensor) -> Tensor:
        return ops.where(x < 0, float("-inf"), ops.log(rate) - rate * x)

    def _cdf(self, x: Tensor, rate: Tensor) -> Tensor:
        return ops.where(x < 0, 0.0, -ops.expm1(-rate * x))

    def _mean(self, rate: Tensor) -> Tensor:
        return ops.reciprocal(rate)

    def _mode(self, rate: Tensor) -> Tensor:
        return ops.zeros_like(rate)

    def _var(self, rate: Tensor) -> Tensor:
        return ops.square(ops.reciprocal(rate))

    def _entropy(self, rate: Tensor) -> Tensor:
        return 1.0 - ops.log(rate)

    def _kl(self, rate: Tensor, other: Tensor) -> Tensor:
        return ops.log(rate) - ops.log(other) + other / rate - 1.0

    def _draw(self, size: Any, rate: Tensor) -> Tensor:
        return -ops.log(self._uniform(size)) / rate


class Gamma(Distribution):
    """The gamma distribution, with a shape and a rate."""

    PARAMETERS = ("concentration", "rate")

    def __init__(
        self,
        concentration: Any = None,
        rate: Any = None,
        seed: int | None = None,
        dtype: Any = dtypes.float32,
        name: str = "Gamma",
    ) -> None:
        super().__init__({"concentration": concentration, "rate": rate}, seed, dtype, name)

    def _log_prob(self, x: Tensor, a: Tensor, rate: Tensor) -> Tensor:
        return a * ops.log(rate) + (a - 1.0) * ops.log(x) - rate * x - ops.lgamma(a)

    def _cdf(self, x: Tensor, a: Tensor, rate: Tensor) -> Tensor:
        return ops.igamma(a, rate * x)

    def _mean(self, a: Tensor, rate: Tensor) -> Tensor:
        return a / rate

    def _mode(self, a: Tensor, rate: Tensor) -> Tensor:
        return ops.where(a > 1.0, (a - 1.0) / rate, float("nan"))

    def _var(self, a: Tensor, rate: Tensor) -> Tensor:
        return a / ops.square(rate)

    def _entropy(self, a: Tensor, rate: Tensor) -> Tensor:
        return a - ops.log(rate) + ops.lgamma(a) + (1.0 - a) * ops.digamma(a)

    def _kl(self, a: Tensor, rate: Tensor, b: Tensor, other: Tensor) -> Tensor:
        shapes = (a - b) * ops.digamma(a) + ops.lgamma(b) - ops.lgamma(a)
        return shapes + b * ops.log(rate) - b * ops.log(other) + a * (other / rate - 1.0)

    def _draw(self, size: Any, a: Tensor, rate: Tensor) -> Tensor:
        shape, scale = np.asarray(a), 1 / np.asarray(rate)
        return random.drawn("Gamma", self.seed, lambda draws: draws.gamma(shape, scale, size), dtypes.float32)


class Beta(Distribution):
    """The beta distribution."""

    PARAMETERS = ("concentration1", "concentration0")

    def __init__(
        self,
        concentration1: Any = None,
        concentration0: Any = None,
        seed: int | None = None,
        dtype: Any = dtypes.float32,
        name: str = "Beta",
    ) -> None:
        super().__init__({"concentration1": concentration1, "concentration0": concentration0}, seed, dtype, name)

    def _log_beta(self, a: Tensor, b: Tensor) -> Tensor:
        return ops.lgamma(a) + ops.lgamma(b) - ops.lgamma(a + b)

    def _log_prob(self, x: Tensor, a: Tensor, b: Tensor) -> Tensor:
        return (a - 1.0) * ops.log(x) + (b - 1.0) * ops.log1p(-x) - self._log_beta(a, b)

    def _mean(self, a: Tensor, b: Tensor) -> Tensor:
        return a / (a + b)

    def _mode(self, a: Tensor, b: Tensor) -> Tensor:
        inside = ops.logical_and(a > 1.0, b > 1.0)
        return ops.where(inside, (a - 1.0) / (a + b - 2.0), float("nan"))

    def _var(self, a: Tensor, b: Tensor) -> Tensor:
        return a * b / (ops.square(a + b) * (a + b + 1.0))

    def _entropy(self, a: Tensor, b: Tensor) -> Tensor:
        own = (a - 1.0) * ops.digamma(a) + (b - 1.0) * ops.digamma(b)
        return self._log_beta(a, b) - own + (a + b - 2.0) * ops.digamma(a + b)

    def _kl(self, a: Tensor, b: Tensor, c: Tensor, d: Tensor) -> Tensor:
        return (
            self._log_beta(c, d) - self._log_beta(a, b) + (a - c) * ops.digamma(a) + (b - d) * ops.digamma(b)
            + (c + d - a - b) * ops.digamma(a + b)
        )  # fmt: skip

    def _draw(self, size: Any, a: Tensor, b: Tensor) -> Tensor:
        first, second = np.asarray(a), np.asarray(b)
        return random.drawn("Beta", self.seed, lambda draws: draws.beta(first, second, size), dtypes.float32)


class Laplace(Distribution):
    """Laplace's distribution."""

    PARAMETERS = ("mean", "sd")

    def __init__(
        self,
        mean: Any = None,
        sd: Any = None,
        seed: int | None = None,
        dtype: Any = dtypes.float32,
        name: str = "Laplace",
    ) -> None:
        super().__init__({"mean": mean, "sd": sd}, seed, dtype, name)

    def _log_prob(self, x: Tensor, mean: Tensor, sd: Tensor) -> Tensor:
        return -ops.abs(x - mean) / sd - ops.log(sd * 2.0)

    def _draw(self, size: Any, mean: Tensor, sd: Tensor) -> Tensor:
        return ops.laplace(size, mean, sd, self.seed)


class Cauchy(Distribution):
    """Cauchy's distribution."""

    PARAMETERS = ("loc", "scale")

    def __init__(
        self,
        loc: Any = None,
        scale: Any = None,
        seed: int | None = None,
        dtype: Any = dtypes.float32,
        name: str = "Cauchy",
    ) -> None:
        super().__init__({"loc": loc, "scale": scale}, seed, dtype, name)

    def _log_prob(self, x: Tensor, loc: Tensor, scale: Tensor) -> Tensor:
        return -math.log(math.pi) - ops.log(scale) - ops.log1p(ops.square((x - loc) / scale))

    def _cdf(self, x: Tensor, loc: Tensor, scale: Tensor) -> Tensor:
        return ops.atan((x - loc) / scale) / math.pi + 0.5

    def _mode(self, loc: Tensor, scale: Tensor) -> Tensor:
        return loc + ops.zeros_like(scale)

    def _entropy(self, loc: Tensor, scale: Tensor) -> Tensor:
        return ops.log(scale) + math.log(4 * math.pi) + ops.zeros_like(loc)

    def _kl(self, loc: Tensor, scale: Tensor, other: Tensor, width: Tensor) -> Tensor:
        return ops.log((ops.square(scale + width) + ops.square(loc - other)) / (scale * width * 4.0))

    def _draw(self, size: Any, loc: Tensor, scale: Tensor) -> Tensor:
        return ops.tan((ops.rand(size, seed=self.seed or None) - 0.5) * math.pi) * scale + loc


class Logistic(Distribution):
    """The logistic distribution."""

    PARAMETERS = ("loc", "scale")

    def __init__(
        self,
        loc: Any = None,
        scale: Any = None,
        seed: int | None = None,
        dtype: Any = dtypes.float32,
        name: str = "Logistic",
    ) -> None:
        super().__init__({"loc": loc, "scale": scale}, seed, dtype, name)

    def _log_prob(self, x: Tensor, loc: Tensor, scale: Tensor) -> Tensor:
        z = (x - loc) / scale
        return -z - ops.softplus(-z) * 2.0 - ops.log(scale)

    def _cdf(self, x: Tensor, loc: Tensor, scale: Tensor) -> Tensor:
        return ops.sigmoid((x - loc) / scale)

    def _mean(self, loc: Tensor, scale: Tensor) -> Tensor:
        return loc + ops.zeros_like(scale)

    _mode = _mean

    def _var(self, loc: Tensor, scale: Tensor) -> Tensor:
        return ops.square(scale) * (math.pi**2 / 3) + ops.zeros_like(loc)

    def _entropy(self, loc: Tensor, scale: Tensor) -> Tensor:
        return ops.log(scale) + 2.0 + ops.zeros_like(loc)

    def _draw(self, size: Any, loc: Tensor, scale: Tensor) -> Tensor:
        u = ops.clamp(ops.rand(size, seed=self.seed or None), 1e-7, 1 - 1e-7)
        return (ops.log(u) - ops.log1p(-u)) * scale + loc


class Gumbel(Distribution):
    """Gumbel's distribution."""

    PARAMETERS = ("loc", "scale")

    def __init__(
        self, loc: Any, scale: Any, seed: int | None = 0, dtype: Any = dtypes.float32, name: str = "Gumbel"
    ) -> None:
        super().__init__({"loc": loc, "scale": scale}, seed, dtype, name)

    def _log_prob(self, x: Tensor, loc: Tensor, scale: Tensor) -> Tensor:
        z = (x - loc) / scale
        return -(z + ops.exp(-z)) - ops.log(scale)

    def _cdf(self, x: Tensor, loc: Tensor, scale: Tensor) -> Tensor:
        return ops.exp(-ops.exp(-(x - loc) / scale))

    def _mean(self, loc: Tensor, scale: Tensor) -> Tensor:
        return loc + scale * _EULER

    def _mode(self, loc: Tensor, scale: Tensor) -> Tensor:
        return loc + ops.zeros_like(scale)

    def _var(self, loc: Tensor, scale: Tensor) -> Tensor:
        return ops.square(scale) * (math.pi**2 / 6) + ops.zeros_like(loc)

    def _entropy(self, loc: Tensor, scale: Tensor) -> Tensor:
        return ops.log(scale) + (1 + _EULER) + ops.zeros_like(loc)

    def _draw(self, size: Any, loc: Tensor, scale: Tensor) -> Tensor:
        return loc - ops.log(-ops.log(ops.clamp(self._uniform(size), 1e-7, 1 - 1e-7))) * scale


class StudentT(Distribution):
    """Student's distribution."""

    PARAMETERS = ("df", "mean", "sd")

    def __init__(
        self,
        df: Any = None,
        mean: Any = None,
        sd: Any = None,
        seed: int | None = None,
        dtype: Any = dtypes.float32,
        name: str = "StudentT",
    ) -> None:
        super().__init__({"df": df, "mean": mean, "sd": sd}, seed, dtype, name)

    def _log_prob(self, x: Tensor, df: Tensor, mean: Tensor, sd: Tensor) -> Tensor:
        y = ops.square((x - mean) / sd) / df
        size = (
            ops.log(sd)
            + ops.log(df) * 0.5
            + 0.5 * math.log(math.pi)
            + ops.lgamma(df * 0.5)
            - ops.lgamma((df + 1.0) * 0.5)
        )
        return (df + 1.0) * -0.5 * ops.log1p(y) - size

    def _draw(self, size: Any, df: Tensor, mean: Tensor, sd: Tensor) -> Tensor:
        many = np.asarray(df)
        return (
            random.drawn("StudentT", self.seed, lambda draws: draws.standard_t(many, size), dtypes.float32) * sd + mean
        )


class TransformedDistribution(Distribution):
    """A distribution of which a bijector takes the values."""

    def __init__(
        self,
        bijector: Bijector,
        distribution: Distribution,
        seed: int | None = None,
        name: str = "transformed_distribution",
    ) -> None:
        super().__init__({}, seed, distribution.dtype, name)
        self.bijector, self.distribution = bijector, distribution

    def log_prob(self, value: Any, *args: Any, **keywords: Any) -> Tensor:
        y = as_numbers(value)
        return self.distribution.log_prob(
            self.bijector.inverse(y), *args, **keywords
        ) + self.bijector.inverse_log_jacobian(y)

    def cdf(self, value: Any, *args: Any, **keywords: Any) -> Tensor:
        return self.distribution.cdf(self.bijector.inverse(as_numbers(value)), *args, **keywords)

    def sample(self, shape: Any = (), *args: Any, **keywords: Any) -> Tensor:
        return self.bijector.forward(self.distribution.sample(shape, *args, **keywords))
