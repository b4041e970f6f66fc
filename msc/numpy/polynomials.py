"""Polynomials by their coefficients, with NumPy's arguments."""

# Values of user programs and lambdas of operators are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownLambdaType=false, reportUnnecessaryComparison=false, reportUnnecessaryIsInstance=false

from __future__ import annotations

from typing import Any

import numpy as np

from msc import ops
from msc.frontend import dtypes
from msc.frontend.tensor import Tensor
from msc.numpy.creation import Data, asarray
from msc.numpy.functions import convolve
from msc.ops.operands import as_float, cast, promoted

__all__ = [
    "correlate",
    "polyadd",
    "polyder",
    "polyint",
    "polymul",
    "polysub",
    "polyval",
    "vander",
]


def _together(a1: Data, a2: Data) -> list[Tensor]:
    """The coefficients of two polynomials, of which the shorter one gets zeros in front."""
    found = [_coefficients(a) for a in (a1, a2)]
    most = max(x.shape[0] for x in found)
    return [ops.pad(x, (most - x.shape[0], 0)) for x in found]


def _coefficients(p: Data) -> Tensor:
    x = ops.ravel(asarray(p))
    return cast(x, dtypes.float32) if x.dtype is dtypes.float64 else x


def polyadd(a1: Data, a2: Data) -> Tensor:
    """The sum of two polynomials."""
    return ops.add(*_together(a1, a2))


def polysub(a1: Data, a2: Data) -> Tensor:
    """The difference of two polynomials."""
    return ops.sub(*_together(a1, a2))


def polymul(a1: Data, a2: Data) -> Tensor:
    """The product of two polynomials."""
    a, b = map(_coefficients, (a1, a2))
    return cast(convolve(a, b), promoted(a.dtype, b.dtype))


def polyder(p: Data, m: int = 1) -> Tensor:
    """The m-th derivative of a polynomial."""
    found = _coefficients(p)
    for _ in range(m):
        count = found.shape[0] - 1
        found = ops.mul(ops.narrow(found, 0, 0, count), Tensor(np.arange(count, 0, -1), found.dtype))
    return found


def polyint(p: Data, m: int = 1, k: Any = None) -> Tensor:
    """The m-th integral of a polynomial, with constants `k`."""
    found = as_float(_coefficients(p))
    given = [0] * m if k is None else list(k) if isinstance(k, list | tuple) else [k] * m
    for number in given:
        count = found.shape[0]
        found = ops.div(found, Tensor(np.arange(count, 0, -1), found.dtype))
        found = ops.concat([found, ops.reshape(cast(asarray(number), found.dtype), (1,))], 0)
    return found


def correlate(a: Data, v: Data, mode: str = "valid") -> Tensor:
    """The sums of products of two vectors at all shifts."""
    x, y = asarray(a), asarray(v)
    if y.shape[0] > x.shape[0]:
        return ops.flip(correlate(y, x, mode), 0)
    found = convolve(x, ops.flip(y, 0), mode)
    dtype = promoted(x.dtype, y.dtype)
    return cast(found, found.dtype if dtype is dtypes.float64 else dtype)


def polyval(p: Data, x: Data) -> Tensor:
    """A polynomial at places, the highest power first."""
    value, result = asarray(x), None
    for c in ops.unbind(asarray(p), 0):
        result = ops.add(ops.zeros_like(value), c) if result is None else ops.add(ops.mul(result, value), c)
    return ops.zeros_like(value) if result is None else result


def vander(x: Data, N: int | None = None, increasing: bool = False) -> Tensor:
    """Powers of a vector's elements, a row each."""
    found = ops.vander(asarray(x), N)
    return ops.flip(found, 1) if increasing else found
