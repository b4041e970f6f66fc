"""Loads of an unrolled loop whose vectors are columns of rows in memory: iteration k reads `x[0][k]`, `x[1][k]`, ...

All of them are read in front of the loop as rows (`transposed_text`), which is the same memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from xdsl.dialects import memref
from xdsl.ir import Operation, SSAValue

from msc.codegen.c import access
from msc.codegen.c.prelude import Prelude
from msc.codegen.c.transposed_text import STEPS, Block, column_blocks, function_of, named_types
from msc.codegen.c.types import CArrayType, CType, value_type
from msc.dialects.loop import AccessOp, ForOp, LoadOp, StoreOp
from msc.poly.affine import linear_form


@dataclass(frozen=True)
class ColumnLoads:
    """A load in an unrolled loop that reads a column in each of `count` iterations, `step` elements further on each.

    Rows are `distance` elements apart.
    """

    load: LoadOp
    stored: CType
    count: int
    step: int
    distance: int | str

    @property
    def blocks(self) -> list[Block]:
        return column_blocks(self.count, self.stored)

    def statement(self, prelude: Prelude, name: str, block: Block, element: str) -> str:
        """Fills a block of the array `name`, whose first column begins with `element`."""
        start, size = block
        if size == 1:
            vector = access.vector_load(prelude, element, self.stored, self.distance, self.stored.lanes)
            return f"{name}[{start}] = {vector};"
        for type_ in named_types(size, self.stored):
            prelude.type_name(type_)
        place = f"{name} + {start}" if start else name
        return f"{prelude.function(function_of(size, self.step), self.stored)}({place}, &{element}, {self.distance});"


def column_loads(loop: ForOp, buffer_of: Callable[[SSAValue], CArrayType | None]) -> list[ColumnLoads]:
    """The loads of an unrolled loop that may be made in front of it, by whole rows.

    `buffer_of` gives the type of a buffer that no other one overlaps. The loop writes none of what they read.
    """
    trips = loop.constant_range
    if trips is None or trips != range(len(trips)):
        return []
    written = {_written_by(op) for op in loop.body.walk()}
    found = list[ColumnLoads]()
    for op in loop.body.block.ops:
        if isinstance(op, LoadOp) and op.buffer not in written and (buffer := buffer_of(op.buffer)) is not None:
            loads = _columns(op, loop, buffer, len(trips))
            if loads is not None and any(size > 1 for _, size in loads.blocks):
                found.append(loads)
    return found


def _written_by(op: Operation) -> SSAValue | None:
    match op:
        case StoreOp():
            return op.buffer
        case memref.StoreOp():
            return op.memref
        case _:
            return None


def _columns(load: LoadOp, loop: ForOp, buffer: CArrayType, trips: int) -> ColumnLoads | None:
    type_, step = value_type(load.result.type), advance(load, loop, buffer)
    distance = access.lane_distance(buffer, load.lane_steps)
    if not type_.is_vector or load.touched_lanes < type_.lanes or step not in STEPS:
        return None
    if isinstance(distance, int) and (trips - 1) * step >= distance:
        return None
    return ColumnLoads(load, access.stored_type(type_), trips, step, distance)


def advance(access_: AccessOp, loop: ForOp, buffer: CArrayType) -> int | None:
    """By how many elements an access moves with each iteration, if nothing but the loop's variable moves it there."""
    if any(value is not loop.variable and loop.is_ancestor(value.owner) for value in access_.indices):
        return None
    forms = [linear_form(expr) for expr in access_.map.results]
    linear = [form for form in forms if form is not None]
    if len(linear) < len(forms):
        return None
    dims = [k for k, value in enumerate(access_.indices) if value is loop.variable]
    steps = [
        (sum(form.coefficients.get(k, 0) for k in dims), s)
        for form, s in zip(linear, buffer.known_strides, strict=True)
    ]
    moved = [(step, stride) for step, stride in steps if step]
    known = [step * stride for step, stride in moved if stride is not None]
    return sum(known) if len(known) == len(moved) else None
