"""Integer arithmetic of quantised operators, as the kernels of TensorFlow Lite for Microcontrollers compute it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from msc.dialects import ms
from msc.dialects.arrays import Array, dtype_text, numpy_dtype
from msc.dialects.element_types import element_type
from msc.dialects.ms.quantisation import QUANTISED
from msc.importers.tflite import fixed_point
from msc.importers.tflite.model import TensorRecord
from msc.importers.tflite.node import Layout, TfliteNode, TfliteValue
from msc.poly.compute import integer_range

F32 = np.float32


class Codes:
    """How the integers of a tensor stand for reals: one scale and zero point. Raises MSC0730 if there is no such."""

    def __init__(self, node: TfliteNode, of: TfliteValue | TensorRecord, what: str) -> None:
        found, dtype = of.quantisation, of.dtype
        self.dtype = dtype if isinstance(dtype, str) else "" if dtype is None else dtype_text(dtype)
        if self.dtype not in QUANTISED:
            raise node.failure("MSC0704", f"its {what} is of {self.dtype or 'no type that msc has'}, not quantised")
        if found is None or found.scales.size != 1 or not found.scales[0] > 0:
            how = "no scale" if found is None else f"{found.scales.size} scales" if found.scales.size > 1 else "scale 0"
            help_ = "the file is not wholly quantised: convert it with a representative data set"
            raise node.failure("MSC0730", f"its {what} of {self.dtype} has {how}; it needs one", help=help_)
        self.scale, self.zero = found.scales[0].astype(F32), int(found.zeros[0])
        low, high = integer_range(self.dtype)
        if not low <= self.zero <= high:
            raise node.failure("MSC0730", f"its {what} of {self.dtype} has the zero point {self.zero}")

    def code(self, real: float) -> int:
        """A real as an integer, not cut."""
        return self.zero + fixed_point.round_away(float(F32(real) / self.scale))

    def limits(self, activation: int) -> tuple[int, int]:
        """The range of a result behind a fused activation, of those that are limits."""
        low, high = integer_range(self.dtype)
        bounds = {1: (0, None), 2: (-1, 1), 3: (0, 6)}.get(activation, (None, None))
        low = low if bounds[0] is None else max(low, self.code(bounds[0]))
        return low, high if bounds[1] is None else min(high, self.code(bounds[1]))


def is_quantised(value: TfliteValue) -> bool:
    """Whether a tensor is of a type whose elements stand for reals where an operator computes on them."""
    return value.dtype in QUANTISED


def has_codes(value: TfliteValue) -> bool:
    """Whether the file says what a tensor's integers stand for."""
    return is_quantised(value) and value.quantisation is not None


def codes(node: TfliteNode, index: int) -> Codes:
    """Those of an input."""
    return Codes(node, node[index], f"input {index}")


def result_codes(node: TfliteNode, index: int = 0) -> Codes:
    """Those of an output."""
    return Codes(node, node.output(index), f"output {index}")


def centred(node: TfliteNode, x: TfliteValue, zero: int) -> TfliteValue:
    """Integers as i32 without their zero point."""
    wide = node.cast(x, "i32")
    return node(ms.SubOp, wide, zero) if zero else wide


def rescaled(
    node: TfliteNode,
    x: TfliteValue,
    reals: float | Sequence[float] | Array,
    *,
    zero: int = 0,
    dtype: str = "i32",
    shape: Sequence[int] = (),
    most: int = 1 << 31,
) -> TfliteValue:
    """I32 times a factor, or one an index in an array of `shape`; as integers of `dtype` with a zero point.

    No |x| is larger than `most`.
    """
    many = np.asarray(reals, np.float64).reshape(-1)
    factors = [fixed_point.factor(float(each)) for each in many]
    return by_factors(node, x, factors, zero=zero, dtype=dtype, shape=shape, most=most)


def by_factors(
    node: TfliteNode,
    x: TfliteValue,
    factors: Sequence[tuple[int, int]],
    *,
    zero: int = 0,
    dtype: str = "i32",
    shape: Sequence[int] = (),
    most: int = 1 << 31,
) -> TfliteValue:
    """The same with factors in fixed point."""
    for multiplier, shift in factors:
        if not (0 <= multiplier < 1 << 31 and -31 <= shift <= 30):
            raise node.failure("MSC0730", "the scales of its inputs and its output lie too far from each other")
    shape = shape if len(set(factors)) > 1 else ()
    used = factors if shape else factors[:1]
    multiplier = node.constant(np.array([m for m, _ in used], np.int32).reshape(shape))
    shift = node.constant(np.array([s for _, s in used], np.int32).reshape(shape))
    offset = node.scalar(zero, dtype) if zero else None
    narrow = most < 1 << 30 and all(-22 <= s <= -1 for _, s in factors) and -256 < zero < 256
    return node(ms.RescaleOp, x, multiplier, shift, offset, dtype=element_type(dtype), narrow=narrow)


def limited(node: TfliteNode, x: TfliteValue, low: int, high: int) -> TfliteValue:
    """Integers between limits; none is written for one that the type has anyhow."""
    least, most = integer_range(x.dtype)
    if low > high:
        raise node.failure("MSC0730", f"its result lies between {low} and {high}, and nothing does")
    x = node(ms.MaximumOp, x, low) if low > least else x
    return node(ms.MinimumOp, x, high) if high < most else x


def zero_moved(
    node: TfliteNode,
    sums: TfliteValue,
    of_weights: Array,
    zero: int,
    bias: TfliteValue | None,
    along: Sequence[int],
) -> TfliteValue:
    """Sums of x times weights as those of x without its zero point, with a bias: one number a channel is added."""
    added = -zero * of_weights
    if bias is not None:
        if bias.array is None or bias.array.size != added.size or bias.dtype not in ("i32", "i64"):
            raise node.failure("MSC0711", f"its bias is a {bias.type}, not {added.size} known integers")
        added = added + bias.array.reshape(-1).astype(np.int64)
    if not added.any():
        return sums
    number = added.astype(numpy_dtype(sums.dtype)).reshape(along)
    return node(ms.AddOp, sums, node.constant(number, bias.label if bias is not None else None))


def by_table(node: TfliteNode, function: Callable[[Array], Array]) -> TfliteValue:
    """A function of each quantised number of 8 bits, by a table that is made at import.

    `function` takes all numbers of the input's type as i32 without the zero point, and gives those of the result's.
    """
    x, given, result = node[0], codes(node, 0), result_codes(node)
    if given.dtype not in ("i8", "ui8"):
        raise node.failure("MSC0704", f"msc has it for floats and for numbers of 8 bits, not for {given.dtype}")
    low, high = integer_range(given.dtype)
    numbers = np.arange(low, high + 1, dtype=np.int32)
    found = np.clip(function(numbers - np.int32(given.zero)), *integer_range(result.dtype))
    return looked_up(node, node.layout(x), x, found.astype(numpy_dtype(result.dtype)), low)


def looked_up(node: TfliteNode, layout: Layout, x: TfliteValue, table: Array, low: int) -> TfliteValue:
    """The entries of a table at the places `x - low`."""
    places = node.cast(layout.take(x), "i32")
    places = node(ms.SubOp, places, low) if low else places
    return layout.give(node(ms.GatherOp, node.constant(table), places, axis=0))
