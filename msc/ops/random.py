"""Random tensors. Uniform and normal numbers, and what is made of them, are part of graphs (`msc.ops.philox`).

Permutations and draws of categories need the elements of tensors, so that a captured graph cannot hold them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from msc.frontend import dtypes
from msc.frontend.capture import INSTALLED
from msc.frontend.dispatch import apply
from msc.frontend.dtypes import DTypeLike, as_dtype
from msc.frontend.errors import ApiValueError, NeedsValue
from msc.frontend.randomness import generator
from msc.frontend.settings import unused
from msc.frontend.tensor import Number, Tensor, concrete
from msc.ops.arithmetic import add, mul
from msc.ops.comparison import greater_equal, less
from msc.ops.philox import normal_numbers, uniform_numbers
from msc.ops.shapes import Sizes, sizes_of
from msc.support.arrays import Array

__all__ = [
    "bernoulli", "multinomial", "normal", "rand", "rand_like", "randint", "randn", "randn_like", "randperm",
    "standard_normal", "uniform",
]  # fmt: skip


def _draws(what: str, seed: int | None = None) -> np.random.Generator:
    if INSTALLED.builder is not None and not getattr(INSTALLED.builder, "runs_at_once", False):
        raise NeedsValue(f"{what}, which draws random numbers at every call,")
    return generator() if not seed else np.random.default_rng(seed)


def drawn(what: str, seed: int | None, function: Callable[[np.random.Generator], Any], dtype: DTypeLike) -> Tensor:
    """What a function draws from a generator, outside of graphs."""
    return _tensor(function(_draws(what, seed)), dtype)


def _tensor(array: Array, dtype: DTypeLike | None = None) -> Tensor:
    return Tensor.of(np.asarray(array).astype(as_dtype(dtype or dtypes.float32).numpy))


def _cast(x: Tensor, dtype: DTypeLike | None = None) -> Tensor:
    wanted = as_dtype(dtype or dtypes.float32)
    return x if x.dtype is wanted else apply("cast", x, dtype=wanted)


def standard_normal(shape: Sizes, seed: int | None = None) -> Tensor:
    """Normal numbers with mean 0 and deviation 1."""
    return normal_numbers(sizes_of(shape), seed)


def _given(size: tuple[Any, ...]) -> tuple[int, ...]:
    return sizes_of(size[0] if len(size) == 1 else size)


def randn(*size: Any, dtype: DTypeLike | None = None, seed: int | None = None) -> Tensor:
    """Normal numbers with mean 0 and deviation 1."""
    return _cast(normal_numbers(_given(size), seed), dtype)


def rand(*size: Any, dtype: DTypeLike | None = None, seed: int | None = None) -> Tensor:
    """Numbers uniform in [0, 1)."""
    return _cast(uniform_numbers(_given(size), seed), dtype)


def rand_like(input: Tensor, seed: int | None = None, *, dtype: DTypeLike | None = None) -> Tensor:
    """Numbers uniform in [0, 1), in the shape of a tensor."""
    return _cast(uniform_numbers(input.shape, seed), dtype or input.dtype)


def randn_like(input: Tensor, seed: int | None = None, *, dtype: DTypeLike | None = None) -> Tensor:
    """Normal numbers, in the shape of a tensor."""
    return _cast(normal_numbers(input.shape, seed), dtype or input.dtype)


def uniform_like(x: Tensor) -> Tensor:
    """Numbers uniform in (0, 1), in the shape of a tensor."""
    tiny = Tensor(float(np.finfo(np.float32).tiny), dtypes.float32)
    return _cast(apply("maximum", uniform_numbers(x.shape), tiny), x.dtype)


def randint(low: int, high: int, size: Sizes, seed: int | None = None, *, dtype: DTypeLike | None = None) -> Tensor:
    """Integers uniform in [low, high)."""
    if low >= high:
        raise ApiValueError("MSC0203", f"randint: low {low} must be less than high {high}")
    return _tensor(_draws("randint", seed).integers(low, high, sizes_of(size)), dtype or dtypes.int64)


def randperm(n: int, seed: int | None = None, offset: int = 0, *, dtype: DTypeLike = dtypes.int64) -> Tensor:
    """0 to n - 1 in a random order."""
    unused("randperm", offset=offset)
    return _tensor(_draws("randperm", seed).permutation(n), dtype)


def uniform(
    shape: Sizes,
    minval: Number | Tensor,
    maxval: Number | Tensor,
    seed: int | None = None,
    dtype: DTypeLike = dtypes.float32,
) -> Tensor:
    """Numbers uniform in [minval, maxval)."""
    found = uniform_numbers(sizes_of(shape), seed)
    return _cast(add(mul(found, maxval - minval), minval), dtype)


def normal(shape: Sizes, mean: Number | Tensor, stddev: Number | Tensor, seed: int | None = None) -> Tensor:
    """Normal numbers with a mean and a deviation."""
    return _cast(add(mul(normal_numbers(sizes_of(shape), seed), stddev), mean))


def bernoulli(input: Tensor, p: float | Tensor = 0.5, seed: int | None = None) -> Tensor:
    """1 with probability p, 0 otherwise, in the shape of a tensor."""
    return _cast(less(uniform_numbers(input.shape, seed), p), input.dtype)


def multinomial(input: Tensor, num_samples: int, replacement: bool = True, seed: int | None = None) -> Tensor:
    """Numbers of categories, drawn with probabilities in proportion to the last axis."""
    draws, weights = _draws("multinomial", seed), concrete(input).astype(np.float64)
    rows = weights.reshape(-1, weights.shape[-1])
    chosen = [draws.choice(len(row), num_samples, replacement, row / row.sum()) for row in rows]
    return _tensor(np.array(chosen).reshape(*weights.shape[:-1], num_samples), dtypes.int64)


def keep_mask(x: Tensor, p: float, shape: Sequence[int], seed: int | None = None) -> Tensor:
    """1 with probability 1 - p, 0 otherwise, in the element type of x."""
    return _cast(greater_equal(uniform_numbers(tuple(shape), seed), p), x.dtype)
