"""Quantised values. Zero points are 0 if they are not given; all broadcast as in NumPy."""

from __future__ import annotations

import numpy as np

from msc.dialects.arrays import Array, numpy_dtype, tensor_dtype
from msc.dialects.ms.base import MsOp
from msc.dialects.ms.quantisation import real_type
from msc.dialects.packed_weights import from_panels, values_from_panels
from msc.interp.meanings.elementwise import converted
from msc.interp.registry import meaning
from msc.poly.compute import integer_range


@meaning("quantize")
def _quantize(op: MsOp, x: Array, scale: Array, zero: Array | None = None) -> Array:
    real = numpy_dtype(real_type(op.dtype(0), op.dtype(1)))
    return _rounded(op, x.astype(real) / scale.astype(real), zero)


@meaning("dequantize")
def _dequantize(op: MsOp, x: Array, scale: Array, zero: Array | None = None) -> Array:
    moved = x.astype(np.int32) if zero is None else x.astype(np.int32) - zero.astype(np.int32)
    dtype = numpy_dtype(real_type(op.dtype(1)))
    return moved.astype(dtype) * scale.astype(dtype)


@meaning("requantize")
def _requantize(op: MsOp, x: Array, scale: Array, zero: Array | None = None) -> Array:
    real = numpy_dtype(real_type(op.dtype(1)))
    return _rounded(op, x.astype(real) * scale.astype(real), zero)


@meaning("packed_matmul")
def _packed_matmul(op: MsOp, x: Array, codes: Array, scale: Array, zero: Array | None = None) -> Array:
    if op.flag("rounds"):
        x = rounded_by_blocks(x, codes.shape[1])
    return x @ packed_weights_of(op.int_("bits"), codes, scale, zero).T


def rounded_by_blocks(x: Array, blocks: int) -> Array:
    """Each block of a row on 255 numbers, the greatest magnitude at an end."""
    apart = x.reshape(len(x), blocks, x.shape[1] // blocks)
    scale: Array = np.maximum(np.abs(apart).max(2, keepdims=True) / np.float32(127), np.finfo(np.float32).tiny)
    whole: Array = np.clip(np.round(apart / scale), -128, 127)
    return (whole * scale).reshape(x.shape)


@meaning("packed_dot")
def _packed_dot(
    op: MsOp, x: Array, x_scale: Array, x_sum: Array, codes: Array, scale: Array, zero: Array | None = None
) -> Array:
    panels, blocks, words, width = codes.shape
    bits, m = op.int_("bits"), len(x)
    apart = np.ascontiguousarray(codes).view(np.uint8).reshape(panels, blocks, words, width, 4)
    weight = from_panels(apart.transpose(0, 1, 2, 4, 3).reshape(panels, blocks, 4 * words, width), bits)
    rows = np.ascontiguousarray(x).view(np.int8).reshape(m, blocks, 4 * x.shape[1] // blocks).astype(np.int32)
    sums = np.einsum("mbk,nbk->mnb", rows, weight.reshape(len(weight), blocks, -1).astype(np.int32))
    if zero is None:
        sums = (sums - np.int32(1 << (bits - 1)) * x_sum[:, None]).astype(np.float32)
    else:
        sums = sums.astype(np.float32) - by_zero(bits, zero) * x_sum[:, None].astype(np.float32)
    return np.sum(sums * (x_scale[:, None] * values_from_panels(scale).astype(np.float32)), 2)


def by_zero(bits: int, zero: Array | None) -> Array:
    """The zero point of each block `[n, blocks]`, or of all."""
    return np.asarray(1 << (bits - 1) if zero is None else values_from_panels(zero), np.float32)


def packed_weights_of(bits: int, codes: Array, scale: Array, zero: Array | None = None) -> Array:
    """The weights `[n, k]` that `ms.packed_matmul` multiplies by, in f32."""
    whole = from_panels(codes, bits)
    apart = whole.reshape(len(whole), codes.shape[1], -1).astype(np.float32) - by_zero(bits, zero)[..., None]
    return (apart * values_from_panels(scale).astype(np.float32)[:, :, None]).reshape(whole.shape)


@meaning("rescale")
def _rescale(op: MsOp, x: Array, multiplier: Array, shift: Array, zero: Array | None = None) -> Array:
    scale = multiply_once if op.word("rounding") == "single" else multiply_twice
    value = scale(x, multiplier, shift)
    value = value if zero is None else value + zero.astype(np.int32)
    return np.clip(value, *integer_range(op.result_dtype())).astype(tensor_dtype(op.result_tensor()))


def multiply_once(x: Array, multiplier: Array, shift: Array) -> Array:
    """`x * multiplier * 2^(shift - 31)` in i32, rounded once, ties upwards."""
    right = 31 - shift.astype(np.int64)
    product = x.astype(np.int64) * multiplier.astype(np.int64)
    return ((product + (1 << (right - 1))) >> right).astype(np.int32)


def multiply_twice(x: Array, multiplier: Array | int, shift: Array | int) -> Array:
    """The same rounded to the upper half of the product, and again where a negative shift moves that right."""
    left, right = (np.maximum(sign * np.asarray(shift, np.int32), 0) for sign in (1, -1))
    moved = np.multiply(x, np.left_shift(np.int32(1), left, dtype=np.int32), dtype=np.int32).astype(np.int64)
    rounded = moved * np.asarray(multiplier, np.int64) + (1 << 30)
    half = (np.left_shift(np.int64(1), right.astype(np.int64)) >> 1) << 31
    away = (rounded >> 63) & np.minimum(half, 1 << 31)
    return ((rounded + half - away) >> (right.astype(np.int64) + 31)).astype(np.int32)


def divide_by_power(x: Array, exponent: Array | int) -> Array:
    """`x / 2^exponent` of i32, ties away from zero."""
    mask = (np.int32(1) << np.asarray(exponent, np.int32)) - np.int32(1)
    limit = (mask >> 1) + (x < 0)
    return ((x >> np.asarray(exponent, np.int32)) + ((x & mask) > limit)).astype(np.int32)


def _rounded(op: MsOp, real: Array, zero: Array | None) -> Array:
    low, high = integer_range(op.result_dtype())
    moved = np.round(real).astype(np.float32)
    moved = moved if zero is None else moved + zero.astype(np.float32)
    return converted(np.clip(moved, low, high), tensor_dtype(op.result_tensor()))
