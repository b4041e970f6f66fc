"""Fixed-point arithmetic of TensorFlow Lite for Microcontrollers, on arrays: how tables and factors are made at import.

Numbers are i32 with an implied binary point. What is used here are the formulas of gemmlowp that the reference kernels
of TensorFlow Lite call; the constants are theirs.
"""

from __future__ import annotations

import math

import numpy as np

from msc.dialects.arrays import Array
from msc.interp.meanings.quantisation import divide_by_power, multiply_twice

_ONE = np.int32((1 << 31) - 1)
"""1, or next to it, with no integer bits."""

_POWERS = (1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242)
"""exp(-1/4), exp(-1/2), ... exp(-16) with no integer bits."""


def factor(real: float) -> tuple[int, int]:
    """A factor as `multiplier * 2^(shift - 31)`: 2^30 <= multiplier < 2^31, or 0."""
    if real == 0:
        return 0, 0
    mantissa, shift = math.frexp(real)
    multiplier = round_away(mantissa * (1 << 31))
    if multiplier == 1 << 31:
        multiplier, shift = multiplier // 2, shift + 1
    return (0, 0) if shift < -31 else (multiplier, shift)


def round_away(real: float) -> int:
    """The nearest integer, ties away from zero."""
    return math.floor(abs(real) + 0.5) * (1 if real >= 0 else -1)


def high_mul(a: Array, b: Array | int) -> Array:
    """The upper half of the doubled product, ties upwards."""
    return multiply_twice(a, b, 0)


def shifted(x: Array, left: int) -> Array:
    """`x * 2^left`, cut to the range of i32; a negative one divides, ties away from zero."""
    if left < 0:
        return divide_by_power(x, -left)
    return np.clip(x.astype(np.int64) << left, -(1 << 31), (1 << 31) - 1).astype(np.int32)


def exp_of_negative(x: Array, bits: int) -> Array:
    """exp(x) with no integer bits, of x <= 0 with `bits` integer bits, at most 5."""
    fraction = 31 - bits
    quarter = np.int32(1 << (fraction - 2))
    rest = (x & (quarter - 1)) - quarter
    result = _exp_next_to_zero(shifted(rest, bits))
    remainder = rest - x
    for exponent, power in enumerate(_POWERS, -2):
        if bits > exponent:
            result = np.where(remainder & (1 << (fraction + exponent)), high_mul(result, power), result)
    return np.where(x == 0, _ONE, result).astype(np.int32)


def _exp_next_to_zero(x: Array) -> Array:
    """exp(x) of -1/4 <= x < 0, no integer bits: four terms of the series around -1/8."""
    a = x + np.int32(1 << 28)
    square = high_mul(a, a)
    cube, fourth = high_mul(square, a), high_mul(square, square)
    terms = shifted(high_mul(shifted(fourth, -2) + cube, 715827883) + square, -1)
    return np.int32(1895147668) + high_mul(a + terms, 1895147668)


def _reciprocal(x: Array) -> Array:
    """2 / (1 + x) of 0 <= x <= 1 by Newton's steps; x has no integer bits, the result has two."""
    half = (x >> 1) + np.int32(1 << 30)
    value = np.int32(1515870810) + high_mul(half, -1010580540)
    for _ in range(3):
        error = np.int32(1 << 29) - high_mul(half, value)
        value = value + shifted(high_mul(value, error), 2)
    return value


def logistic(x: Array) -> Array:
    """The sigmoid, 1 / (1 + exp(-x)), with no integer bits, of x with four."""
    positive = shifted(_reciprocal(exp_of_negative(-np.abs(x), 4)), 1)
    return np.where(x == 0, 1 << 30, np.where(x > 0, positive, _ONE - positive)).astype(np.int32)


def tanh(x: Array) -> Array:
    """The hyperbolic tangent with no integer bits, of x with four."""
    magnitude = shifted(_reciprocal(exp_of_negative(-np.abs(x), 5)) - np.int32(1 << 29), 2)
    return np.where(x == 0, 0, np.where(x > 0, magnitude, -magnitude)).astype(np.int32)


_OFF = {4: 1, 35: 1, 69: -1, 71: -1, 117: -1, 174: -1, 255: 1}
SIGMOIDS = np.array([math.floor(65536 / (1 + math.exp(-k * 0.041668321)) + 0.5) + _OFF.get(k, 0) for k in range(256)])
"""The kernels' table of the sigmoid in steps of 1/24, in 16 bits; the formula is theirs to within the numbers added."""


def input_radius(bits: int, shift: int) -> int:
    """How far from its zero point a quantised input with `bits` integer bits may be before a function is saturated."""
    return math.floor(((1 << bits) - 1) * (1 << (31 - bits)) / 2.0**shift)
