"""The legal types of values at the loop stage: scalars, vectors of them, and buffers with the layout of C arrays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from xdsl.dialects import func, memref
from xdsl.dialects.builtin import DYNAMIC_INDEX, IndexType, MemRefType, NoneAttr, VectorType
from xdsl.ir import Attribute, Operation, SSAValue

from msc.dialects import loop
from msc.dialects.element_types import BYTES, dtype_name

_MOST_LANES = 1024
_GIVE_BUFFERS = (memref.AllocaOp, memref.ViewOp, memref.ReinterpretCastOp, loop.BufferSliceOp)


def is_scalar(type_: Attribute) -> bool:
    """An index, a signless integer or a float that msc computes on."""
    name = dtype_name(type_)
    return isinstance(type_, IndexType) or (name in BYTES and not name.startswith("u"))


def is_buffer(type_: Attribute) -> bool:
    """A memref of known shape, its elements in order without gaps."""
    if not isinstance(type_, MemRefType):  # `isa` says the same, twenty times slower; also below
        return False
    buffer = cast(MemRefType[Attribute], type_)
    plain = isinstance(buffer.layout, NoneAttr) and isinstance(buffer.memory_space, NoneAttr)
    element = buffer.element_type
    return plain and DYNAMIC_INDEX not in buffer.get_shape() and is_scalar(element) and element != IndexType()


def _is_vector(type_: Attribute) -> bool:
    """Of a power of two of lanes."""
    if not isinstance(type_, VectorType):
        return False
    vector = cast(VectorType[Attribute], type_)
    if vector.get_num_dims() != 1 or not is_scalar(vector.element_type):
        return False
    (lanes,) = vector.get_shape()
    return 2 <= lanes <= _MOST_LANES and lanes & (lanes - 1) == 0


def mistyped_values(function: func.FuncOp) -> Iterator[tuple[Operation, SSAValue]]:
    """Each value of a function's operations that is of no type of the loop stage, with its operation."""
    for op in function.walk():
        if op is function:
            continue
        buffers = isinstance(op, _GIVE_BUFFERS)
        for value in op.results:
            fits = is_buffer(value.type) if buffers else is_scalar(value.type) or _is_vector(value.type)
            if not fits:
                yield op, value
        for argument in (a for region in op.regions for block in region.blocks for a in block.args):
            if not is_scalar(argument.type):
                yield op, argument
