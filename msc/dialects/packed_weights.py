"""How weights of 2, 4 and 8 bits lie in bytes: in the panels that `ms.packed_matmul` reads, and in rows as in files."""

from __future__ import annotations

import numpy as np

from msc.dialects.arrays import Array

_WIDTHS = (64, 32, 16)
"""Columns of a panel: a line of a cache at most."""


def panel_width(columns: int) -> int:
    """The widest panels that take no more columns than panels of 16 do."""
    return next(width for width in _WIDTHS if -(-columns // width) * width == -(-columns // 16) * 16)


def in_panels(codes: Array, bits: int, block: int) -> Array:
    """Codes `[n, blocks * block]`, one a byte, as `[panels, blocks, bytes, width]`; columns that fill up are 0."""
    n, k = codes.shape
    width, parts = panel_width(n), 8 // bits
    filled = np.zeros((-(-n // width) * width, k), np.uint8)
    filled[:n] = codes
    apart = filled.reshape(-1, width, k // block, parts, block // parts)
    packed = apart[:, :, :, 0]
    for part in range(1, parts):
        packed = packed | apart[:, :, :, part] << np.uint8(bits * part)
    return np.ascontiguousarray(packed.transpose(0, 2, 3, 1))


def from_panels(packed: Array, bits: int) -> Array:
    """The codes `[panels * width, blocks * block]`, one a byte."""
    panels, blocks, size, width = packed.shape
    places = np.arange(0, 8, bits, dtype=np.uint8)[:, None, None]
    apart = packed[:, :, None] >> places & np.uint8((1 << bits) - 1)
    return apart.transpose(0, 4, 1, 2, 3).reshape(panels * width, blocks * (8 // bits) * size)


def values_in_panels(values: Array) -> Array:
    """One value a block `[n, blocks]` as `[panels, blocks, width]`; what fills up is 0."""
    n, blocks = values.shape
    width = panel_width(n)
    filled = np.zeros((-(-n // width) * width, blocks), values.dtype)
    filled[:n] = values
    return np.ascontiguousarray(filled.reshape(-1, width, blocks).transpose(0, 2, 1))


def values_from_panels(values: Array) -> Array:
    """One value a block: `[panels * width, blocks]`."""
    return values.transpose(0, 2, 1).reshape(-1, values.shape[1])


def bytes_of(codes: Array, bits: int) -> Array:
    """Rows of codes as rows of bytes, the first code in the lowest bits; the last byte is filled up with 0."""
    parts = 8 // bits
    filled = np.pad(codes.astype(np.uint8), ((0, 0), (0, -codes.shape[1] % parts))).reshape(len(codes), -1, parts)
    places = np.arange(0, 8, bits, dtype=np.uint8)
    return np.bitwise_or.reduce(filled << places, axis=2).astype(np.uint8)


def codes_of_bytes(packed: Array, bits: int) -> Array:
    """The codes of each row of bytes, from the lowest bits on."""
    places = np.arange(0, 8, bits, dtype=np.uint8)
    return ((packed[:, :, None] >> places) & np.uint8((1 << bits) - 1)).reshape(packed.shape[0], -1)
