"""Functions of each element, softmax, and the activations that other operators carry."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from msc.dialects import ms
from msc.dialects.arrays import Array
from msc.dialects.element_types import element_type
from msc.dialects.ms.base import MsOp
from msc.dialects.ms.properties import PlainValue
from msc.importers.tflite import fixed_point
from msc.importers.tflite.integers import (
    F32,
    by_table,
    centred,
    codes,
    is_quantised,
    limited,
    rescaled,
    result_codes,
)
from msc.importers.tflite.node import TfliteNode, TfliteValue
from msc.importers.tflite.registry import importer
from msc.interp.meanings.quantisation import divide_by_power, multiply_twice


def activated(node: TfliteNode, x: TfliteValue, activation: int) -> TfliteValue:
    """Reals behind a fused activation: none, ReLU, ReLU between -1 and 1, ReLU6, tanh, sign."""
    match activation:
        case 0:
            return x
        case 1:
            return node(ms.ReluOp, x) if x.dtype == "f32" else node(ms.MaximumOp, x, 0)
        case 2:
            return node(ms.ClipOp, x, min=-1.0, max=1.0)
        case 3:
            return node(ms.Relu6Op, x) if x.dtype == "f32" else node(ms.ClipOp, x, min=0.0, max=6.0)
        case 4:
            return node(ms.TanhOp, x)
        case _:
            raise node.failure("MSC0711", f"its fused activation has the number {activation}")


def limits_only(node: TfliteNode, activation: int) -> int:
    """A fused activation of integers, which must be none or limits. Raises MSC0711."""
    if not 0 <= activation <= 3:
        raise node.failure("MSC0711", f"its fused activation has the number {activation}; of integers it is a limit")
    return activation


def unary(node: TfliteNode, operation: type[MsOp], **properties: PlainValue) -> TfliteValue:
    """An operation on each element, however the tensor lies."""
    layout = node.layout(node[0])
    return layout.give(node(operation, layout.take(node[0]), **properties))


@importer("RELU", "RELU_N1_TO_1", "RELU6", "RELU_0_TO_1")
def _relu(node: TfliteNode) -> TfliteValue:
    """Of integers: ReLU scales, ReLU6 is a limit alone in TensorFlow Lite for Microcontrollers."""
    bounds = {"RELU_N1_TO_1": (-1.0, 1.0), "RELU6": (0.0, 6.0), "RELU_0_TO_1": (0.0, 1.0)}.get(node.record.name)
    if not is_quantised(node[0]):
        return unary(node, ms.ReluOp) if bounds is None else unary(node, ms.ClipOp, min=bounds[0], max=bounds[1])
    given, result = codes(node, 0), result_codes(node)
    if bounds is not None and given.scale == result.scale and given.zero == result.zero:
        layout = node.layout(node[0])
        return layout.give(limited(node, layout.take(node[0]), *(given.code(each) for each in bounds)))
    if given.dtype == "i16":
        layout = node.layout(node[0])
        moved = centred(node, layout.take(node[0]), given.zero)
        y = rescaled(node, moved, float(given.scale / result.scale), zero=result.zero, dtype=result.dtype)
        least, most = (result.code(0), 32767) if bounds is None else (result.code(b) for b in bounds)
        return layout.give(limited(node, y, least, most))
    multiplier, shift = fixed_point.factor(float(given.scale / result.scale))
    low, high = (result.zero, None) if bounds is None else (result.code(b) for b in bounds)

    def function(x: Array) -> Array:
        y = multiply_twice(x, multiplier, shift) + result.zero
        return np.clip(y, low, high)

    return by_table(node, function)


@importer("LEAKY_RELU")
def _leaky_relu(node: TfliteNode) -> TfliteValue:
    alpha = float(node.options("LeakyReluOptions").Alpha())
    if not is_quantised(node[0]):
        return unary(node, ms.LeakyReluOp, alpha=alpha)
    given, result = codes(node, 0), result_codes(node)
    plain = fixed_point.factor(float(given.scale / result.scale))
    scaled = fixed_point.factor(abs(float(F32(given.scale * F32(alpha)) / result.scale)))

    def function(x: Array) -> Array:
        below = multiply_twice(x, *scaled) * (-1 if alpha < 0 else 1)
        return np.where(x >= 0, multiply_twice(x, *plain), below) + result.zero

    return by_table(node, function)


@importer("PRELU")
def _prelu(node: TfliteNode) -> TfliteValue:
    x, slope = node[0], node[1]
    layout = node.layout(x, slope)
    x, slope = layout.take(x), layout.take(slope)
    if not is_quantised(node[0]):
        below = node(ms.MulOp, x, slope)
        return layout.give(node(ms.SelectOp, node(ms.GreaterEqualOp, x, 0.0), x, below))
    given, alpha, result = codes(node, 0), codes(node, 1), result_codes(node)
    moved = centred(node, x, given.zero)
    both = float(given.scale) * float(alpha.scale) / float(result.scale)
    one = float(given.scale) / float(result.scale)
    plain = rescaled(node, moved, one, zero=result.zero, dtype=result.dtype)
    product = node(ms.MulOp, moved, centred(node, slope, alpha.zero))
    below = rescaled(node, product, both, zero=result.zero, dtype=result.dtype)
    return layout.give(node(ms.SelectOp, node(ms.GreaterEqualOp, moved, 0), plain, below))


@importer("HARD_SWISH")
def _hard_swish(node: TfliteNode) -> TfliteValue:
    if not is_quantised(node[0]):
        return unary(node, ms.HardSwishOp)
    given, result = codes(node, 0), result_codes(node)
    fine = F32(F32(1 / 128) * given.scale)
    out, out_shift = _half(*fixed_point.factor(float(F32(fine / result.scale))))
    gate, gate_shift = _half(*fixed_point.factor(float(F32(fine / F32(3 / 32768)))))
    if out_shift > 0:
        raise node.failure("MSC0730", "the scale of its output is too small beside that of its input")

    def function(x: Array) -> Array:
        y = (x << 7).astype(np.int16).astype(np.int32)
        value = _high_mul16(y, out)
        if gate_shift > 0:
            y = _cut16(y << (gate_shift - 1))
        y = _high_mul16(y, gate)
        if gate_shift > 0:
            y = _cut16(y << 1)
        if gate_shift < 0:
            y = divide_by_power(y, -gate_shift)
        y = (y + (1 << 15)) >> 1
        product = y * value
        truncated = np.sign(product) * (np.abs(product) >> 15)
        return divide_by_power(truncated.astype(np.int32), -out_shift) + result.zero

    return by_table(node, function)


def _half(multiplier: int, shift: int) -> tuple[int, int]:
    """A multiplier in 16 bits."""
    return (0x7FFF if multiplier >= 0x7FFF8000 - 1 else (multiplier + (1 << 15)) >> 16), shift


def _cut16(x: Array) -> Array:
    return np.clip(x, -(1 << 15), (1 << 15) - 1).astype(np.int32)


def _high_mul16(a: Array, b: int) -> Array:
    """The upper half of the doubled product of numbers of 16 bits, ties upwards."""
    return _cut16((a * np.int32(b) + (1 << 14)) >> 15)


@importer("LOGISTIC", "TANH")
def _saturating(node: TfliteNode) -> TfliteValue:
    """In fixed point with four integer bits; far from zero, the ends of the range."""
    is_tanh = node.record.name == "TANH"
    if not is_quantised(node[0]):
        return unary(node, ms.TanhOp if is_tanh else ms.SigmoidOp)
    given = codes(node, 0)
    if given.dtype == "i16":
        return _saturating_wide(node, given.scale, is_tanh)
    mantissa, shift = math.frexp(float(given.scale) * (1 << 27))
    multiplier, radius = fixed_point.round_away(mantissa * (1 << 31)), fixed_point.input_radius(4, shift)
    unsigned = 128 if result_codes(node).dtype == "ui8" else 0

    def function(x: Array) -> Array:
        fixed = multiply_twice(x, min(multiplier, (1 << 31) - 1), shift)
        value = divide_by_power(fixed_point.tanh(fixed), 24) if is_tanh else _of_byte(fixed_point.logistic(fixed))
        value = np.where(x <= -radius, -128, np.where(x >= radius, 127, value))
        return np.clip(value, -128, 127) + unsigned

    return by_table(node, function)


def _saturating_wide(node: TfliteNode, scale: np.float32, is_tanh: bool) -> TfliteValue:
    """The input's scale becomes 1 / (3 * 4096), that of the table, by a multiplier and a shift."""
    power = math.log2(float(scale))
    if power.is_integer() and 0 <= 12 + power <= is_tanh:
        multiplier, shift = 3 << round(12 + power), 0
    else:
        real, shift = float(scale) * 4096.0 * 3.0, 0
        while real <= 32767.0 / 2.0 and shift <= 30:
            real, shift = real * 2.0, shift + 1
        multiplier = int(real)
    layout = node.layout(node[0])
    return layout.give(interpolated(node, layout.take(node[0]), multiplier, shift, is_tanh=is_tanh))


def interpolated(node: TfliteNode, x: TfliteValue, multiplier: int, shift: int, *, is_tanh: bool) -> TfliteValue:
    """The sigmoid or the tanh of numbers of 16 bits, between entries of the sigmoid's table, in 16 bits."""
    bits = 8 if is_tanh else 9
    steps = np.append(np.diff(fixed_point.SIGMOIDS), 0).astype(np.int32)
    starts = (fixed_point.SIGMOIDS << bits).astype(np.int32)
    starts[-1] = 0xFFFF << 8 if is_tanh else 0x7FFF << 10
    data = node(ms.MulOp, node.cast(x, "i32"), multiplier)
    if shift:
        data = node(ms.ShiftRightOp, node(ms.AddOp, data, 1 << (shift - 1)), shift)
    size = node(ms.AbsOp, data)
    place = node(ms.MinimumOp, node(ms.ShiftRightOp, size, bits), 255)
    start, step = (node(ms.GatherOp, node.constant(table), place, axis=0) for table in (starts, steps))
    value = node(ms.AddOp, start, node(ms.MulOp, node(ms.BitwiseAndOp, size, (1 << bits) - 1), step))
    less = node(ms.SubOp, node.scalar(0, "i32"), value)
    # Each moved by half a step of the result before it is cut.
    above, below = ((128 - (1 << 23)), (1 << 23) + 127) if is_tanh else (512, (1 << 25) + 511)
    is_below = node(ms.LessOp, data, 0)
    whole = node(ms.SelectOp, is_below, node(ms.AddOp, less, below), node(ms.AddOp, value, above))
    return node.cast(node(ms.ShiftRightOp, whole, 8 if is_tanh else 10), "i16")


def _of_byte(x: Array) -> Array:
    """Numbers from 0 to 1 as codes of the scale 1/256 and the zero point -128."""
    return divide_by_power(x, 23) - 128


@importer("SOFTMAX")
def _softmax(node: TfliteNode) -> TfliteValue:
    x, beta = node[0], float(node.options("SoftmaxOptions").Beta())
    beta = beta if node.record.options is not None else 1.0
    layout = node.layout(x)
    axis = layout.axis(x.rank - 1)
    if not is_quantised(x):
        taken = layout.take(x)
        taken = taken if beta == 1 else node(ms.MulOp, taken, beta)
        return layout.give(node(ms.SoftmaxOp, taken, axis=axis))
    return layout.give(_softmax_of_bytes(node, layout.take(x), beta, axis))


def _softmax_of_bytes(node: TfliteNode, x: TfliteValue, beta: float, axis: int) -> TfliteValue:
    """Exponentials by a table over the distance from the largest, with their sum's reciprocal by Newton's steps."""
    given, result = codes(node, 0), result_codes(node)
    if given.dtype not in ("i8", "ui8") or result.dtype not in ("i8", "ui8", "i16"):
        raise node.failure("MSC0704", f"msc has it for floats and numbers of 8 bits, not from {given.dtype}")
    multiplier, shift = fixed_point.factor(min(beta * float(given.scale) * (1 << 26), (1 << 31) - 1.0))
    if not 0 <= shift <= 30:
        raise node.failure("MSC0730", f"its input's scale {given.scale} times beta {beta} is out of all bounds")
    steps = -np.arange(256, dtype=np.int32)
    exps = fixed_point.exp_of_negative(multiply_twice(steps, multiplier, shift), 5)
    exps = np.where(steps >= -fixed_point.input_radius(5, shift), exps, 0).astype(np.int32)
    largest = node.cast(node(ms.ReduceMaxOp, x, axis=[axis], keep_dims=True), "i32")
    places = node(ms.SubOp, largest, node.cast(x, "i32"))
    terms = node(ms.GatherOp, node.constant(divide_by_power(exps, 12)), places, axis=0)
    total = node(ms.ReduceSumOp, terms, axis=[axis], keep_dims=True)
    powers = node.constant((1 << np.arange(31, dtype=np.int64)).astype(np.int32))
    below = node(ms.LessOp, node(ms.ExpandDimsOp, total, axis=[total.rank]), powers)
    headroom = node(ms.AddOp, node(ms.ReduceSumOp, node.cast(below, "i32"), axis=[total.rank]), 1)
    scale = _reciprocal(node, node(ms.BitwiseAndOp, node(ms.ShiftLeftOp, total, headroom), 0x7FFFFFFF))
    bits = 16 if result.dtype == "i16" else 8
    zero = 0 if result.dtype == "ui8" else -(1 << (bits - 1))
    exponent = node(ms.SubOp, headroom, 12 + 31 - bits)
    whole = node(ms.GatherOp, node.constant(exps), places, axis=0)
    offset = node.scalar(zero, result.dtype) if zero else None
    return node(ms.RescaleOp, whole, scale, exponent, offset, dtype=element_type(result.dtype))


def _reciprocal(node: TfliteNode, x: TfliteValue) -> TfliteValue:
    """1 / (1 + x) with no integer bits, of such 0 <= x < 1: `fixed_point` computes the same of arrays."""

    def times(a: TfliteValue, b: TfliteValue | int) -> TfliteValue:
        other = node.scalar(b, "i32") if isinstance(b, int) else b
        return node(ms.RescaleOp, a, other, node.scalar(0, "i32"), dtype=element_type("i32"))

    half = node(ms.AddOp, node(ms.ShiftRightOp, x, 1), 1 << 30)
    value = node(ms.AddOp, times(half, -1010580540), 1515870810)
    for _ in range(3):
        error = node(ms.SubOp, node.scalar(1 << 29, "i32"), times(half, value))
        value = node(ms.AddOp, value, node(ms.ShiftLeftOp, times(value, error), 2))
    over = node(ms.GreaterOp, value, (1 << 30) - 1)
    return node(ms.SelectOp, over, node.scalar((1 << 31) - 1, "i32"), node(ms.ShiftLeftOp, value, 1))


@importer("LOG_SOFTMAX")
def _log_softmax(node: TfliteNode) -> TfliteValue:
    _floats_only(node)
    layout = node.layout(node[0])
    return layout.give(node(ms.LogSoftmaxOp, layout.take(node[0]), axis=layout.axis(node[0].rank - 1)))


_BY_FLOATS: dict[str, tuple[type[MsOp], Callable[[Array], Array]]] = {
    "ELU": (ms.EluOp, lambda x: np.where(x < 0, np.exp(x) - F32(1), x)),
    "EXP": (ms.ExpOp, np.exp),
    "LOG": (ms.LogOp, lambda x: np.log(np.maximum(x, F32(1e-30)))),
    "SQRT": (ms.SqrtOp, lambda x: np.sqrt(np.maximum(x, F32(0)))),
    "RSQRT": (ms.RsqrtOp, lambda x: 1 / np.sqrt(np.maximum(x, F32(1e-30)))),
    "SIN": (ms.SinOp, np.sin),
    "COS": (ms.CosOp, np.cos),
    "SQUARE": (ms.SquareOp, lambda x: x * x),
    "ABS": (ms.AbsOp, np.abs),
    "NEG": (ms.NegOp, np.negative),
}
"""Operators whose integers are those of the function of the reals: where TFLM has one of 8 bits, it is this table."""


@importer(*_BY_FLOATS, "GELU")
def _by_floats(node: TfliteNode) -> TfliteValue:
    if node.record.name == "GELU":
        _floats_only(node)
        is_approximate = bool(node.options("GeluOptions").Approximate())
        return unary(node, ms.GeluOp, approximate="tanh" if is_approximate else "none")
    operation, function = _BY_FLOATS[node.record.name]
    if not is_quantised(node[0]):
        return unary(node, operation)
    given, result = codes(node, 0), result_codes(node)

    def table(x: Array) -> Array:
        real: Array = given.scale * x.astype(F32)
        return _rounded(function(real).astype(F32) * F32(1 / result.scale)) + result.zero

    return by_table(node, table)


def _rounded(x: Array) -> Array:
    """The nearest integers, ties away from zero."""
    whole = np.sign(x) * np.floor(np.abs(x).astype(np.float64) + 0.5)
    return np.clip(whole, -(1 << 31), (1 << 31) - 1).astype(np.int64)


def _floats_only(node: TfliteNode) -> None:
    if is_quantised(node[0]):
        raise node.failure("MSC0704", f"msc has it for floats, not for quantised {node[0].dtype}")
