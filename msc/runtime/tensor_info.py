"""What a model takes and gives, for people and programs: names, NumPy dtypes, shapes with ranges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from msc.runtime.arguments import numpy_dtype
from msc.runtime.narrow_types import narrow_dtype
from msc.runtime.program import Bound, Signature, SizeSpec, TensorSpec


@dataclass(frozen=True)
class SizeRange:
    """A dimension whose size each call decides, from `low` to `high`, None for no limit.

    `name` is "" where it is computed from others.
    """

    name: str
    low: int
    high: int | None

    def __str__(self) -> str:
        if self.high is None:
            return self.name
        return f"{self.name}={self.low}..{self.high}" if self.name else f"{self.low}..{self.high}"


@dataclass(frozen=True)
class TensorInfo:
    """An input or output of a model: `shape` has an int or a `SizeRange` for each dimension; None for any rank."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int | SizeRange, ...] | None

    def __str__(self) -> str:
        shape = "..." if self.shape is None else ", ".join(map(str, self.shape))
        return f"{self.name}: {self.dtype}[{shape}]"


def tensor_infos(tensors: Sequence[TensorSpec], signature: Signature) -> tuple[TensorInfo, ...]:
    """The tensors of a signature."""
    return tuple(TensorInfo(t.name, _dtype(t), _shape(t, signature.sizes)) for t in tensors)


def _dtype(tensor: TensorSpec) -> np.dtype[Any]:
    return narrow_dtype(tensor.codes) if tensor.codes else numpy_dtype(tensor.dtype)


def _shape(tensor: TensorSpec, sizes: Sequence[SizeSpec]) -> tuple[int | SizeRange, ...]:
    bounds, counts = tensor.bounds or (None,) * len(tensor.shape), tensor.counts or ("",) * len(tensor.shape)
    return tuple(
        SizeRange(count, 0, n) if count else n if b is None else _range(b, sizes)
        for n, b, count in zip(tensor.public_shape, bounds, counts, strict=True)
    )


def _range(bound: Bound, sizes: Sequence[SizeSpec]) -> SizeRange:
    if bound.size is not None:
        size = sizes[bound.size]
        return SizeRange(size.name, size.low, size.high)
    ends = bound.at([s.low for s in sizes]), bound.at([s.high for s in sizes])
    return SizeRange("", min(ends), max(ends))
