"""Numbers of eight bits and fewer that msc does not compute on: kept as their codes (ui8), converted through tables.

Converting from a code reads a table; converting to one counts the boundaries between neighbouring values that the
magnitude reaches. So float8, float4, int4 and int2 cost no operation of their own, and are exact.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import ml_dtypes
import numpy as np
from onnx import TensorProto

from msc.dialects import ms
from msc.dialects.arrays import Array
from msc.importers.onnx.node import Node
from msc.importers.onnx.values import OnnxValue, known
from msc.runtime.narrow_types import codes_of


@dataclass(frozen=True)
class NarrowType:
    """An element type by its ONNX number; `bits` are its lowest ones in a code."""

    number: int
    dtype: np.dtype[Any]
    bits: int

    @property
    def is_integer(self) -> bool:
        """Whether the values are whole numbers."""
        return "int" in self.dtype.name

    @cached_property
    def table(self) -> Array:
        """The value of every code: i8 for integers, f32 for floats."""
        codes = np.arange(1 << self.bits, dtype=np.uint8)
        if not self.is_integer:
            return codes.view(self.dtype).astype(np.float32)
        signed = codes.astype(np.int16) - (codes >> (self.bits - 1)).astype(np.int16) * (1 << self.bits)
        return (codes if self.dtype.name.startswith("u") else signed).astype(np.int8)

    @property
    def sign_bit(self) -> int:
        """The code's bit for the sign; 0 if there is none."""
        return 0 if self.number == TensorProto.FLOAT8E8M0 else 1 << (self.bits - 1)

    def magnitudes(self) -> Array:
        """The finite values that are not negative, in order of their codes, which is theirs."""
        positive = self.table[: self.sign_bit or 1 << self.bits].astype(np.float64)
        return positive[np.isfinite(positive)]

    def boundaries(self, rounding: str, saturate: bool) -> Array:
        """From which f32 on a magnitude has the next code; the last one, if any, is where it overflows."""
        values = self.magnitudes()
        if not saturate:
            values = np.append(values, 2 * values[-1] - values[-2])
        middle = {"up": values[:-1], "down": values[1:]}.get(rounding, (values[:-1] + values[1:]) / 2)
        # A value in the middle goes to the even code, so from an odd one it goes on; "up" goes on at anything more.
        stays = np.arange(middle.size) % 2 == 0 if rounding == "nearest" else np.full(middle.size, rounding == "up")
        exact = middle.astype(np.float32)
        return np.where(stays, np.nextafter(exact, np.float32(np.inf)), exact)

    def special(self, saturate: bool) -> tuple[int, int]:
        """The codes of NaN, and of infinity or what stands for it."""
        with np.errstate(all="ignore"):
            nan = int(np.array(np.nan, np.float32).astype(self.dtype).view(np.uint8)) & 0xFF
        largest = self.magnitudes().size - 1
        codes = np.flatnonzero(np.isposinf(self.table))
        infinite = int(codes[0]) if codes.size else nan
        return nan, largest if saturate else infinite


_FLOATS: Mapping[int, Any] = {
    TensorProto.FLOAT8E4M3FN: ml_dtypes.float8_e4m3fn,
    TensorProto.FLOAT8E4M3FNUZ: ml_dtypes.float8_e4m3fnuz,
    TensorProto.FLOAT8E5M2: ml_dtypes.float8_e5m2,
    TensorProto.FLOAT8E5M2FNUZ: ml_dtypes.float8_e5m2fnuz,
    TensorProto.FLOAT8E8M0: ml_dtypes.float8_e8m0fnu,
}

NARROW: Mapping[int, NarrowType] = {
    **{number: NarrowType(number, np.dtype(dtype), 8) for number, dtype in _FLOATS.items()},
    TensorProto.FLOAT4E2M1: NarrowType(TensorProto.FLOAT4E2M1, np.dtype(ml_dtypes.float4_e2m1fn), 4),
    TensorProto.INT4: NarrowType(TensorProto.INT4, np.dtype(ml_dtypes.int4), 4),
    TensorProto.UINT4: NarrowType(TensorProto.UINT4, np.dtype(ml_dtypes.uint4), 4),
    TensorProto.INT2: NarrowType(TensorProto.INT2, np.dtype(ml_dtypes.int2), 2),
    TensorProto.UINT2: NarrowType(TensorProto.UINT2, np.dtype(ml_dtypes.uint2), 2),
}
"""The types that are kept as codes, by ONNX number."""


def narrow_value(codes: OnnxValue, type_: NarrowType) -> OnnxValue:
    """A value whose elements are codes of a type."""
    return replace(codes, narrow=type_.number)


def known_codes(array: Array, type_: NarrowType, label: str | None = None) -> OnnxValue:
    """The value of an array of a narrow type."""
    return narrow_value(known(codes_of(array, type_.dtype), label), type_)


def decoded(node: Node, x: OnnxValue) -> OnnxValue:
    """The numbers of a tensor: i8 or f32 for codes, else itself."""
    if x.narrow is None:
        return x
    return node(ms.GatherOp, node.constant(NARROW[x.narrow].table), node.cast(replace(x, narrow=None), "i64"))


def encoded(
    node: Node, x: OnnxValue, type_: NarrowType, *, saturate: bool = True, rounding: str = "nearest"
) -> OnnxValue:
    """The codes of numbers: integers wrap; floats are rounded, and cut to the largest unless `saturate` is off."""
    if type_.is_integer:
        whole = x if x.dtype[0] in "iu" and x.dtype != "i1" else node.cast(x, "i32")
        low = node(ms.BitwiseAndOp, node.cast(whole, "i32"), (1 << type_.bits) - 1)
        return narrow_value(node.cast(low, "ui8"), type_)
    real = node.cast(x, "f32")
    magnitude = node(ms.AbsOp, real)
    steps = node.constant(type_.boundaries(rounding, saturate))
    reached = node(ms.GreaterEqualOp, node(ms.ExpandDimsOp, magnitude, axis=[x.rank]), steps)
    code = node(ms.ReduceSumOp, node.cast(reached, "i32"), axis=[x.rank])
    return narrow_value(node.cast(_finished(node, real, magnitude, code, type_, saturate), "ui8"), type_)


def _finished(
    node: Node, real: OnnxValue, magnitude: OnnxValue, code: OnnxValue, type_: NarrowType, saturate: bool
) -> OnnxValue:
    """The code of a magnitude with its sign; infinity and NaN have codes of their own."""
    nan, infinite = type_.special(saturate)
    count = type_.magnitudes().size
    if not saturate:
        code = node(ms.SelectOp, node(ms.GreaterEqualOp, code, count), node.scalar(infinite, "i32"), code)
    code = node(ms.SelectOp, node(ms.EqualOp, magnitude, math.inf), node.scalar(infinite, "i32"), code)
    if type_.sign_bit:
        negative = _negative(node, real, type_)
        code = node(ms.SelectOp, negative, node(ms.BitwiseOrOp, code, type_.sign_bit), code)
    if type_.bits < 8:
        return code
    return node(ms.SelectOp, node(ms.IsNanOp, real), node.scalar(nan, "i32"), code)


def _negative(node: Node, real: OnnxValue, type_: NarrowType) -> OnnxValue:
    """Whether the sign bit is set: also of -0, in types that have one (1 by it is -inf)."""
    below = node(ms.LessOp, real, 0.0)
    if "fnuz" in type_.dtype.name:
        # What rounds to zero has no sign there.
        smallest = float(type_.boundaries("nearest", True)[0])
        return node(ms.LessEqualOp, real, -smallest)
    zero = node(ms.LogicalAndOp, node(ms.EqualOp, real, 0.0), node(ms.LessOp, node(ms.ReciprocalOp, real), 0.0))
    return node(ms.LogicalOrOp, below, zero)
