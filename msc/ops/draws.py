"""Random numbers of less common distributions; they are drawn outside of graphs."""

# Values of user programs and lambdas of operators are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownLambdaType=false, reportUnnecessaryComparison=false, reportUnnecessaryIsInstance=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from msc.frontend import dtypes
from msc.frontend.dtypes import as_dtype
from msc.frontend.settings import unused
from msc.frontend.tensor import Tensor, tensor_method
from msc.ops import (
    activation,
    arithmetic,
    random,
    selection,
    shapes,
    unary,
)
from msc.ops.operands import cast, only_tensor
from msc.ops.outside import on_arrays

__all__ = [
    "bernoulli_ext", "gamma", "laplace", "multinomial_with_replacement", "randint_like", "random_categorical",
    "random_gamma", "random_poisson", "shuffle", "standard_laplace",
]  # fmt: skip

# Random numbers.


def shuffle(x: Tensor, seed: int | None = None) -> Tensor:
    """The entries of the first axis in a random order."""
    return selection.gather(x, random.randperm(x.shape[0], seed), 0)


def randint_like(input: Tensor, low: int, high: int, seed: int | None = None, *, dtype: Any = None) -> Tensor:
    """Integers uniform in [low, high), in the shape of a tensor."""
    return random.randint(low, high, input.shape, seed, dtype=dtype or input.dtype)


def bernoulli_ext(input: Tensor, *, generator: Any = None) -> Tensor:
    """1 with the probability that an element says."""
    unused("bernoulli", generator=generator)
    return random.bernoulli(input, input)


def laplace(shape: Any, mean: Any, lambda_param: Any, seed: int | None = None) -> Tensor:
    """Numbers of Laplace's distribution."""
    u = arithmetic.sub(random.rand(shapes.sizes_of(shape), seed=seed), 0.5)
    size = unary.log(arithmetic.maximum(arithmetic.sub(1.0, arithmetic.mul(unary.abs(u), 2.0)), 1e-30))
    return arithmetic.sub(mean, arithmetic.mul(arithmetic.mul(unary.sign(u), size), lambda_param))


def standard_laplace(shape: Any, seed: int | None = None) -> Tensor:
    """Numbers of Laplace's distribution with mean 0 and scale 1."""
    return laplace(shape, 0.0, 1.0, seed)


def _drawn(name: str, seed: int | None, function: Callable[[Any], Any], dtype: Any) -> Tensor:
    return random.drawn(name, seed, function, dtype)


def gamma(shape: Any, alpha: Tensor, beta: Tensor, seed: int | None = None) -> Tensor:
    """Numbers of the gamma distribution with a shape and a rate."""

    def numbers(a: Any, b: Any) -> Any:
        size = (*shapes.sizes_of(shape), *np.broadcast_shapes(a.shape, b.shape))
        return _drawn("gamma", seed, lambda draws: draws.gamma(a, 1 / b, size), dtypes.float32).asnumpy()

    return on_arrays("gamma", numbers, *(only_tensor(v, "gamma") for v in (alpha, beta)))


def random_gamma(shape: Any, alpha: Tensor, seed: int | None = None) -> Tensor:
    """Numbers of the gamma distribution with a shape and rate 1."""

    def numbers(a: Any) -> Any:
        size = (*shapes.sizes_of(shape), *a.shape)
        return _drawn("random_gamma", seed, lambda draws: draws.gamma(a, 1.0, size), alpha.dtype).asnumpy()

    return on_arrays("random_gamma", numbers, only_tensor(alpha, "random_gamma"))


def random_poisson(shape: Any, rate: Tensor, seed: int | None = None, dtype: Any = dtypes.float32) -> Tensor:
    """Numbers of Poisson's distribution with a rate."""
    mean = np.asarray(only_tensor(rate, "random_poisson"))
    size = (*shapes.sizes_of(shape), *mean.shape)
    return _drawn("random_poisson", seed, lambda draws: draws.poisson(mean, size), dtype)


def poisson_values(shape: Any, mean: Any, *, seed: int = 0, seed2: int = 0) -> Tensor:
    """Numbers of Poisson's distribution (Int32)."""
    return random_poisson(shape, only_tensor(mean, "Poisson"), (seed or seed2) or None, dtypes.int32)


def gamma_values(shape: Any, alpha: Any, beta: Any, *, seed: int = 0, seed2: int = 0) -> Tensor:
    """Numbers of the gamma distribution."""
    return gamma(shape, alpha, beta, (seed or seed2) or None)


def truncated_normal_values(shape: Any, *, seed: int = 0, seed2: int = 0, dtype: Any = dtypes.float32) -> Tensor:
    """Normal numbers, drawn anew outside of two deviations."""
    size = shapes.sizes_of(shape)

    def draw(draws: Any) -> Any:
        found = draws.normal(size=size)
        while (outside := np.abs(found) > 2).any():
            found = np.where(outside, draws.normal(size=size), found)
        return found

    return _drawn("TruncatedNormal", (seed or seed2) or None, draw, dtype)


def cauchy_values(*, size: Any, median: float = 0.0, sigma: float = 1.0) -> Tensor:
    """Numbers of Cauchy's distribution."""
    return _drawn("Cauchy", None, lambda draws: median + sigma * draws.standard_cauchy(tuple(size)), dtypes.float32)


def random_categorical(logits: Tensor, num_sample: int, seed: int = 0, dtype: Any = dtypes.int64) -> Tensor:
    """Numbers of categories, drawn by the softmax of each row."""
    return cast(
        random.multinomial(activation.softmax(logits, -1), int(num_sample), True, seed or None), as_dtype(dtype)
    )


def multinomial_values(
    x: Tensor, num_samples: int, *, seed: int = 0, seed2: int = 0, dtype: Any = dtypes.int32
) -> Tensor:
    """Numbers of categories, drawn in proportion to the last axis."""
    return cast(random.multinomial(x, int(num_samples), True, (seed or seed2) or None), as_dtype(dtype))


def multinomial_with_replacement(
    x: Tensor, seed: Any, offset: Any, numsamples: int, replacement: bool = False
) -> Tensor:
    """Numbers of categories, drawn in proportion to the last axis."""
    unused("multinomial_with_replacement", offset=0 if offset is None else int(offset))
    return random.multinomial(x, numsamples, replacement, int(seed) or None)


def gen_mask_values(shape: Any, keep_prob: Any, *, Seed0: int = 0, Seed1: int = 0) -> Tensor:
    """1 with a probability, 0 otherwise; `DropoutDoMask` takes it."""
    kept = random.rand(shapes.sizes_of(shape), seed=(Seed0 or Seed1) or None) < keep_prob
    return cast(kept, dtypes.uint8)


def do_mask_values(x: Tensor, mask: Tensor, keep_prob: Any) -> Tensor:
    """X where the mask is 1, divided by the probability, 0 elsewhere."""
    return arithmetic.div(arithmetic.mul(x, cast(mask, x.dtype)), keep_prob)


def drop_channels_values(name: str) -> Callable[..., Any]:
    def drop(x: Tensor, *, keep_prob: float = 0.5) -> tuple[Tensor, Tensor]:
        shape = (*x.shape[:2], *(1,) * (x.ndim - 2))
        mask = shapes.broadcast_to(random.keep_mask(x, 1 - keep_prob, shape), x.shape)
        return arithmetic.mul(arithmetic.mul(x, mask), 1 / keep_prob if keep_prob else 0.0), cast(mask, dtypes.bool_)

    drop.__doc__ = f"{name}: channels dropped as a whole, and which elements stay."
    return drop


for _function in (random_categorical,):
    tensor_method(_function.__name__)(_function)
