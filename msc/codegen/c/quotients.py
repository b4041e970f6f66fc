"""Quotients by a constant that are only rounded to bytes: products with its inverse and one correction, if proven.

A division of a vector takes as long as a dozen multiply-adds. With `r = 1 / s`, `q = x r` and `q + (x - q s) r` in
multiply-adds lie within an ulp of `x / s`, so both round to the same byte except maybe next to the ties, a few floats
for each of 512: there the two are compared, for each s. What is proven gives the bytes of a division on all machines.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects import arith, math, vector
from xdsl.dialects.builtin import FloatAttr
from xdsl.ir import Operation, SSAValue

from msc.codegen.c.types import value_type
from msc.dialects.loop import LanesOp

_Floats: TypeAlias = NDArray[np.float32]
_BYTE = 8
_TIES = 256
"""A byte less its zero point is smaller."""
_NEIGHBOURS = 4
"""Floats on either side of a tie that are looked at: beyond them lies more than both errors."""
_SCALES = (2.0**-60, 2.0**60)
"""With these nothing that decides is subnormal."""
_LIMITS = (arith.MaximumfOp, arith.MinimumfOp, arith.AddfOp)


def inverse_of_divisor(op: Operation) -> float | None:
    """The number to multiply by, where that gives the same bytes as a division of f32 vectors; None elsewhere."""
    if not isinstance(op, arith.DivfOp) or not value_type(op.result.type).is_vector:
        return None
    divisor = _constant(op.rhs)
    if value_type(op.result.type).base != "f32" or divisor is None or _constant(op.lhs) is not None:
        return None
    rounded = [use.operation for use in op.result.uses]
    if not rounded or not all(isinstance(each, math.RoundEvenOp) and _ends_in_bytes(each) for each in rounded):
        return None
    return float(np.float32(1) / np.float32(divisor)) if is_proven(divisor) else None


def _constant(value: SSAValue) -> float | None:
    source = value.owner.source.owner if isinstance(value.owner, vector.BroadcastOp) else value.owner
    if isinstance(source, arith.ConstantOp) and isinstance(source.value, FloatAttr):
        return float(source.value.value.data)
    return None


def _ends_in_bytes(op: Operation) -> bool:
    """Whether all that is made of a result is moved, cut and becomes bytes."""
    users = [use.operation for result in op.results for use in result.uses]
    return bool(users) and all(
        value_type(each.results[0].type).bits == _BYTE
        if isinstance(each, LanesOp)
        else isinstance(each, _LIMITS) and _ends_in_bytes(each)
        for each in users
    )


@lru_cache(maxsize=1024)
def is_proven(divisor: float) -> bool:
    """Whether the product and its correction round to what the quotient does, for all f32 that a byte tells apart."""
    if not _SCALES[0] < divisor < _SCALES[1]:
        return False
    scale = np.float32(divisor)
    ties = (np.arange(-_TIES, _TIES) + 0.5) * np.float64(scale)
    x = np.concatenate(list(_around(ties.astype(np.float32))))
    inverse = np.float32(1) / scale
    q = x * inverse
    rest = (x.astype(np.float64) - q.astype(np.float64) * np.float64(scale)).astype(np.float32)
    total = rest.astype(np.float64) * np.float64(inverse) + q
    corrected = total.astype(np.float32)
    surely = 2 * np.abs(total - corrected) < np.spacing(np.abs(corrected))
    return bool(surely.all()) and bool((np.rint(corrected) == np.rint(x / scale)).all())


def _around(middle: _Floats) -> Iterator[_Floats]:
    yield middle
    for end in (np.float32(np.inf), np.float32(-np.inf)):
        moved = middle
        for _ in range(_NEIGHBOURS):
            moved = np.nextafter(moved, end)
            yield moved
