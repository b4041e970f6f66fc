"""Buffers of the loop stage as NumPy arrays: allocating, viewing and copying them.

Fresh memory is poisoned (NaN for floats), so that reading what was never written shows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import DYNAMIC_INDEX, DenseArrayBase, MemRefType
from xdsl.ir import Attribute, Operation

from msc.dialects.arrays import Array, element_dtype
from msc.ir.locations import source_location
from msc.support.diagnostics import Diagnostic, MscError

_POISON = 0xFF
"""Every byte of fresh memory: NaN in each float format, -1 in integers."""

_STATIC = ("static_offsets", "static_sizes", "static_strides")


def fresh(shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
    """An uninitialised array. Booleans are false: other bytes than 0 and 1 are not booleans."""
    if dtype == np.bool_:
        return np.zeros(shape, dtype)
    return np.full(math.prod(shape) * dtype.itemsize, _POISON, np.uint8).view(dtype).reshape(shape)


def fresh_bytes(size: int) -> Array:
    """A poisoned workspace (i8), aligned as compiled code wants it."""
    return fresh((size,), np.dtype(np.int8))


def buffer_type(op: Operation) -> MemRefType[Attribute]:
    """The memref type that an operation gives."""
    return cast("MemRefType[Attribute]", op.results[0].type)


def allocate(op: Operation, *sizes: int) -> Array:
    """memref.alloc and alloca."""
    given = iter(sizes)
    shape = [next(given) if n == DYNAMIC_INDEX else n for n in buffer_type(op).get_shape()]
    return fresh(shape, element_dtype(buffer_type(op).element_type))


def view(op: Operation, source: Array, shift: int, *sizes: int) -> Array:
    """memref.view: a typed buffer in a buffer of bytes."""
    given = iter(sizes)
    shape = [next(given) if n == DYNAMIC_INDEX else n for n in buffer_type(op).get_shape()]
    dtype = element_dtype(buffer_type(op).element_type)
    return source[shift : shift + math.prod(shape) * dtype.itemsize].view(dtype).reshape(shape)


def entry(op: Operation, source: Array, index: int) -> Array:
    """loop.slice. Raises MSC0610 for an index outside the first axis."""
    if not 0 <= index < len(source):
        message = f"loop.slice: index {index} is outside an axis of size {len(source)}"
        raise MscError(Diagnostic("MSC0610", message, source_location(op)))
    return source[index, ...]


def reshape(op: Operation, source: Array, *_: int) -> Array:
    """memref.expand_shape and collapse_shape on contiguous buffers."""
    return source.reshape(buffer_type(op).get_shape())


def subview(op: Operation, source: Array, *dynamic: int) -> Array:
    """memref.subview: offsets, sizes and strides, each static or the next operand."""
    given = iter(dynamic)
    lists = [_filled(op, name, given) for name in _STATIC]
    cut = source[tuple(slice(o, o + (n - 1) * s + 1, s) for o, n, s in zip(*lists, strict=True))]
    return cut.reshape(buffer_type(op).get_shape()) if cut.ndim != len(buffer_type(op).get_shape()) else cut


def reinterpret(op: Operation, source: Array, *dynamic: int) -> Array:
    """memref.reinterpret_cast: offset, sizes and strides in elements of the source's memory."""
    given = iter(dynamic)
    offsets, sizes, strides = (_filled(op, name, given) for name in _STATIC)
    flat = source.reshape(-1)[offsets[0] :]
    return np.lib.stride_tricks.as_strided(flat, sizes, [s * flat.itemsize for s in strides])


def _filled(op: Operation, name: str, dynamic: Any) -> list[int]:
    values = cast("DenseArrayBase[Any]", op.properties[name]).get_values()
    return [int(next(dynamic)) if n == DYNAMIC_INDEX else int(n) for n in values]


def copy(op: Operation, source: Array, target: Array) -> None:
    """memref.copy."""
    target[...] = source


def same(op: Operation, source: Array) -> Array:
    """memref.cast and memory_space_cast."""
    return source
