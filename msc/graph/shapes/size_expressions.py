"""Numbers at the largest sizes and at samples of others, as linear expressions over the sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import AffineMapAttr
from xdsl.ir.affine import AffineConstantExpr, AffineExpr, AffineMap

from msc.dialects.arrays import Array, dense_array
from msc.dialects.ms.constants import constant_of
from msc.dialects.ms.structure import ConstantOp
from msc.dialects.open_sizes import CONSTANT
from msc.poly.affine import simplified

Numbers = NDArray[np.int64]

MOST_FACTORS = 3
"""How often a size is a factor of one number."""


@dataclass(frozen=True)
class Linear:
    """Numbers, element by element, as `constant + sum(coefficients[k] * size k)`."""

    constant: Numbers
    coefficients: tuple[Numbers, ...]

    @property
    def is_one_number(self) -> bool:
        """Whether all elements are the same expression."""
        return all(
            part.size and bool((part == part.reshape(-1)[0]).all()) for part in (self.constant, *self.coefficients)
        )

    def expression(self, place: int = 0) -> AffineExpr:
        """The element at a flat place."""
        total: AffineExpr = AffineConstantExpr(int(self.constant.reshape(-1)[place]))
        for k, part in enumerate(self.coefficients):
            total = total + AffineExpr.dimension(k) * int(part.reshape(-1)[place])
        return simplified(total)


def linear(
    top: Numbers, values: Sequence[Numbers], sizes: Sequence[Sequence[int]], highest: Sequence[int]
) -> Linear | None:
    """The linear expressions that have these values; None if there are none with integer coefficients.

    `values[k]` are the numbers at `sizes[k]`, which differ from the largest in size k alone, those after them in all.
    """
    if any(value.shape != top.shape for value in values):
        return None
    coefficients = list[Numbers]()
    for k, high in enumerate(highest):
        rise, run = top - values[k], high - sizes[k][k]
        if (rise % run).any():
            return None
        coefficients.append(rise // run)
    constant = top - sum((c * high for c, high in zip(coefficients, highest, strict=True)), np.zeros_like(top))
    for value, at in zip(values, sizes, strict=True):
        found = constant + sum((c * n for c, n in zip(coefficients, at, strict=True)), np.zeros_like(top))
        if not np.array_equal(found, value):
            return None
    return Linear(constant, tuple(coefficients))


def product(
    top: Numbers, values: Sequence[Numbers], sizes: Sequence[Sequence[int]], highest: Sequence[int]
) -> tuple[int, Sequence[AffineExpr]] | None:
    """The factor and the sizes whose product a number is; None if it is none. Takes what `linear` does."""
    flat = [array.reshape(-1) for array in (top, *values)]
    if any(array.size != flat[0].size or not array.size or (array != array[0]).any() for array in flat):
        return None
    most, *found = (int(array[0]) for array in flat)
    used = _powers(lambda k, e: most * sizes[k][k] ** e == found[k] * highest[k] ** e, len(highest))
    factor, rest = divmod(most, prod(highest[k] for k in used))
    agrees = all(factor * prod(at[k] for k in used) == n for at, n in zip(sizes, found, strict=True))
    return (factor, [AffineExpr.dimension(k) for k in used]) if not rest and agrees else None


def _powers(agrees: Callable[[int, int], bool], count: int) -> list[int]:
    """Sizes by number, each as often as it is a factor of a number: twice in the area of a square, say."""
    powers = [next((e for e in range(MOST_FACTORS + 1) if agrees(k, e)), 0) for k in range(count)]
    return [k for k, power in enumerate(powers) for _ in range(power)]


def quotient(
    top: Array, values: Sequence[Array], sizes: Sequence[Sequence[int]], highest: Sequence[int]
) -> tuple[float, Sequence[AffineExpr]] | None:
    """The number and the sizes that it is divided by, up to rounding; None if a real number is no such quotient."""
    flat = [array.reshape(-1) for array in (top, *values)]
    if top.dtype.kind != "f" or any(not a.size or (a != a[0]).any() or a[0] == 0 for a in flat):
        return None
    most, *found = (float(array[0]) for array in flat)
    error = 4 * float(np.finfo(top.dtype).eps)
    used = _powers(lambda k, e: abs(found[k] * sizes[k][k] ** e / (most * highest[k] ** e) - 1) <= error, len(highest))
    number = most * prod(highest[k] for k in used)
    agrees = all(
        abs(number / prod(at[k] for k in used) - n) <= error * abs(n) for at, n in zip(sizes, found, strict=True)
    )
    return (number, [AffineExpr.dimension(k) for k in used]) if agrees else None


def numbers_of(constant: ConstantOp) -> Numbers | None:
    """The elements of a constant that are integers."""
    array = dense_array(constant.value)
    if array.dtype.kind == "b":
        return None
    numbers = array.astype(np.int64)
    return numbers if np.array_equal(numbers.astype(array.dtype), array) else None


def of_sizes(constant: ConstantOp, expression: AffineExpr, sizes: int) -> ConstantOp:
    """A copy of a constant that says what it is over the sizes."""
    own = constant.clone()
    own.attributes[CONSTANT] = AffineMapAttr(AffineMap(sizes, 0, (expression,)))
    return own


def number(expression: AffineExpr, highest: Sequence[int]) -> ConstantOp:
    """An expression over the sizes as a constant of type i64."""
    plain = constant_of(np.array(expression.eval(highest, ()), np.int64))
    return of_sizes(plain, expression, len(highest)) if expression.used_dims() else plain
