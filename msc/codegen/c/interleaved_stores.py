"""Stores of an unrolled loop whose vectors interleave in memory: iteration k of n writes `y[k]`, `y[n + k]`, ...

The loop fills an array of vectors, which are stored behind it side by side.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from xdsl.ir import SSAValue

from msc.codegen.c import access
from msc.codegen.c.transposed_loads import advance
from msc.codegen.c.types import CArrayType, CType, value_type
from msc.dialects.loop import AccessOp, ForOp, StoreOp

COUNTS = (2, 4)
"""Vectors that there are functions for."""


@dataclass(frozen=True)
class InterleavedStore:
    """A store in an unrolled loop of `count` iterations, of vectors of the type `stored`."""

    store: StoreOp
    stored: CType
    count: int


def interleaved_stores(loop: ForOp, buffer_of: Callable[[SSAValue], CArrayType | None]) -> list[InterleavedStore]:
    """The stores of an unrolled loop that may be made behind it: nothing else in it touches their buffers.

    `buffer_of` gives the type of a buffer that no other one overlaps.
    """
    trips = loop.constant_range
    if trips is None or trips != range(len(trips)) or len(trips) not in COUNTS:
        return []
    touched = [op.buffer for op in loop.body.walk() if isinstance(op, AccessOp)]
    found = list[InterleavedStore]()
    for op in loop.body.block.ops:
        if not isinstance(op, StoreOp) or touched.count(op.buffer) > 1 or (buffer := buffer_of(op.buffer)) is None:
            continue
        type_, distance = value_type(op.value.type), access.lane_distance(buffer, op.lane_steps)
        whole = type_.is_vector and op.touched_lanes == type_.lanes
        if whole and distance == len(trips) and advance(op, loop, buffer) == 1:
            found.append(InterleavedStore(op, access.stored_type(CType(buffer.base, type_.lanes)), len(trips)))
    return found
