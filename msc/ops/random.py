"""Random tensors. They are drawn when the function is called, so that a captured graph cannot hold one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from msc.frontend import dtypes
from msc.frontend.capture import INSTALLED
from msc.frontend.dtypes import DTypeLike, as_dtype
from msc.frontend.errors import ApiValueError, NeedsValue
from msc.frontend.randomness import generator
from msc.frontend.tensor import Number, Tensor, concrete
from msc.ops.shapes import Sizes, sizes_of

Array: TypeAlias = NDArray[Any]


def _draws(what: str, seed: int | None = None) -> np.random.Generator:
    if INSTALLED.builder is not None:
        raise NeedsValue(f"{what}, which draws random numbers at every call,")
    return generator() if not seed else np.random.default_rng(seed)


def _tensor(array: Array, dtype: DTypeLike | None = None) -> Tensor:
    return Tensor.of(np.asarray(array).astype(as_dtype(dtype or dtypes.float32).numpy))


def standard_normal(shape: Sizes, seed: int | None = None) -> Tensor:
    """Normal numbers with mean 0 and deviation 1."""
    return _tensor(_draws("standard_normal", seed).normal(size=sizes_of(shape)))


def _given(size: tuple[Any, ...]) -> tuple[int, ...]:
    return sizes_of(size[0] if len(size) == 1 else size)


def randn(*size: Any, dtype: DTypeLike | None = None, seed: int | None = None) -> Tensor:
    """Normal numbers with mean 0 and deviation 1."""
    return _tensor(_draws("randn", seed).normal(size=_given(size)), dtype)


def rand(*size: Any, dtype: DTypeLike | None = None, seed: int | None = None) -> Tensor:
    """Numbers uniform in [0, 1)."""
    return _tensor(_draws("rand", seed).random(_given(size)), dtype)


def rand_like(input: Tensor, seed: int | None = None, *, dtype: DTypeLike | None = None) -> Tensor:
    """Numbers uniform in [0, 1), in the shape of a tensor."""
    return _tensor(_draws("rand_like", seed).random(input.shape), dtype or input.dtype)


def randn_like(input: Tensor, seed: int | None = None, *, dtype: DTypeLike | None = None) -> Tensor:
    """Normal numbers, in the shape of a tensor."""
    return _tensor(_draws("randn_like", seed).normal(size=input.shape), dtype or input.dtype)


def uniform_like(x: Tensor) -> Tensor:
    """Numbers uniform in (0, 1), in the shape of a tensor."""
    tiny = np.finfo(np.float32).tiny
    return _tensor(np.maximum(_draws("gumbel_softmax").random(x.shape), tiny), x.dtype)


def randint(low: int, high: int, size: Sizes, seed: int | None = None, *, dtype: DTypeLike | None = None) -> Tensor:
    """Integers uniform in [low, high)."""
    if low >= high:
        raise ApiValueError("MSC0203", f"randint: low {low} must be less than high {high}")
    return _tensor(_draws("randint", seed).integers(low, high, sizes_of(size)), dtype or dtypes.int64)


def randperm(n: int, seed: int | None = None, offset: int = 0, *, dtype: DTypeLike = dtypes.int64) -> Tensor:
    """0 to n - 1 in a random order."""
    del offset
    return _tensor(_draws("randperm", seed).permutation(n), dtype)


def uniform(
    shape: Sizes,
    minval: Number | Tensor,
    maxval: Number | Tensor,
    seed: int | None = None,
    dtype: DTypeLike = dtypes.float32,
) -> Tensor:
    """Numbers uniform in [minval, maxval)."""
    low, high = (concrete(v) if isinstance(v, Tensor) else v for v in (minval, maxval))
    return _tensor(_draws("uniform", seed).uniform(low, high, sizes_of(shape)), dtype)


def normal(shape: Sizes, mean: Number | Tensor, stddev: Number | Tensor, seed: int | None = None) -> Tensor:
    """Normal numbers with a mean and a deviation."""
    centre, deviation = (concrete(v) if isinstance(v, Tensor) else v for v in (mean, stddev))
    return _tensor(centre + deviation * _draws("normal", seed).normal(size=sizes_of(shape)))


def bernoulli(input: Tensor, p: float | Tensor = 0.5, seed: int | None = None) -> Tensor:
    """1 with probability p, 0 otherwise, in the shape of a tensor."""
    chance = concrete(p) if isinstance(p, Tensor) else p
    return _tensor(_draws("bernoulli", seed).random(input.shape) < chance, input.dtype)


def multinomial(input: Tensor, num_samples: int, replacement: bool = True, seed: int | None = None) -> Tensor:
    """Numbers of categories, drawn with probabilities in proportion to the last axis."""
    draws, weights = _draws("multinomial", seed), concrete(input).astype(np.float64)
    rows = weights.reshape(-1, weights.shape[-1])
    chosen = [draws.choice(len(row), num_samples, replacement, row / row.sum()) for row in rows]
    return _tensor(np.array(chosen).reshape(*weights.shape[:-1], num_samples), dtypes.int64)


def keep_mask(x: Tensor, p: float, shape: Sequence[int], seed: int | None = None) -> Tensor:
    """1 with probability 1 - p, 0 otherwise, in the element type of x."""
    return _tensor(_draws("dropout", seed).random(tuple(shape)) >= p, x.dtype)
