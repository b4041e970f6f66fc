"""Compute definitions: what a basic operator does, as statements over boxes. All that the scheduler reads.

A statement is

    for (d0, d1, ...) in box(extents):   result[write(d)] = body(d)                       (combine is None)
    for (d0, d1, ...) in box(extents):   result[write(d)] = combine(result[write(d)], body(d))

where in the second form the dimensions that `write` does not use are reduced, starting from `identity` (or from
what an earlier statement of the same operator has written, if `accumulate`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from xdsl.ir.affine import AffineExpr, AffineMap

from msc.poly.scalar import Scalar

Combine: TypeAlias = Literal["add", "mul", "max", "min", "and", "or"]


@dataclass(frozen=True, slots=True)
class Statement:
    """One loop nest of an operator: `extents` is the box, `names` name its dimensions for loops and reports."""

    extents: tuple[int, ...]
    names: tuple[str, ...]
    write: AffineMap
    body: Scalar
    combine: Combine | None = None
    result: int = 0
    accumulate: bool = False

    def __post_init__(self) -> None:
        if not len(self.extents) == len(self.names) == self.write.num_dims:
            raise ValueError(f"statement over {self.extents} with names {self.names} and write map {self.write}")

    @property
    def reduced(self) -> tuple[int, ...]:
        """Dimensions that are reduced: those the write map does not use."""
        if self.combine is None:
            return ()
        used = self.write.used_dims()
        return tuple(d for d in range(len(self.extents)) if d not in used)

    @property
    def points(self) -> int:
        return math.prod(self.extents)


def identity(combine: Combine, dtype: str) -> float | int | bool:
    """The neutral element of a combiner in an element type."""
    if combine in ("add", "or"):
        return 0 if dtype != "i1" else False
    if combine in ("mul", "and"):
        return 1 if combine == "mul" or dtype == "i1" else -1
    if dtype == "i1":
        return combine == "min"
    if dtype[0] in "fb":
        return -math.inf if combine == "max" else math.inf
    low, high = integer_range(dtype)
    return low if combine == "max" else high


def integer_range(dtype: str) -> tuple[int, int]:
    """Smallest and largest value of an integer element type."""
    bits = int(dtype.lstrip("ui"))
    return (0, 2**bits - 1) if dtype.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def dims(count: int) -> tuple[AffineExpr, ...]:
    """The dimension expressions d0 ... d(count-1)."""
    return tuple(AffineExpr.dimension(i) for i in range(count))


def affine_map(num_dims: int, results: Sequence[AffineExpr | int]) -> AffineMap:
    """An affine map of `num_dims` dimensions; plain integers stand for constants."""
    exprs = tuple(AffineExpr.constant(r) if isinstance(r, int) else r for r in results)
    return AffineMap(num_dims, 0, exprs)


def broadcast_map(shape: Sequence[int], to: Sequence[int]) -> AffineMap:
    """NumPy broadcasting: the index into a tensor of `shape` for a point of the box `to`."""
    offset = len(to) - len(shape)
    d = dims(len(to))
    return affine_map(len(to), [0 if n == 1 and to[offset + i] != 1 else d[offset + i] for i, n in enumerate(shape)])
