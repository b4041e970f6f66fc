"""Tensors as buffers: the memref type of a tensor, and views that share its bytes."""

from __future__ import annotations

from functools import cache, lru_cache
from math import prod

from xdsl.dialects import memref
from xdsl.dialects.builtin import IntegerType, MemRefType, Signedness, TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.utils.hints import isa

from msc.dialects.loop import BufferSliceOp
from msc.ir.typed import static_shape


@cache
def storage_type(element: Attribute) -> Attribute:
    """The element type in a buffer: integers are signless there, signedness is in the operations."""
    if isa(element, IntegerType[int, Signedness]) and element.signedness.data is not Signedness.SIGNLESS:
        return IntegerType(element.width.data)
    return element


def buffer_type(tensor: TensorType[Attribute]) -> MemRefType[Attribute]:
    """The contiguous memref of a tensor's shape; raises ShapeConflict if a dimension is not known."""
    return contiguous(storage_type(tensor.element_type), static_shape(tensor))


@lru_cache(maxsize=4096)
def contiguous(element: Attribute, shape: tuple[int, ...]) -> MemRefType[Attribute]:
    """The contiguous memref of elements, made once: making a type takes as long as an operation."""
    return MemRefType(element, shape)


def contiguous_view(buffer: SSAValue, type_: MemRefType[Attribute]) -> memref.ReinterpretCastOp:
    """The bytes of a contiguous buffer under another shape of as many elements."""
    shape = static_shape(type_)
    strides = [prod(shape[axis + 1 :]) for axis in range(len(shape))]
    return memref.ReinterpretCastOp(buffer, [], [], [], [0], list(shape), strides, type_)


def root_buffer(buffer: SSAValue) -> SSAValue:
    """The buffer whose bytes a chain of views and entries shows."""
    while isinstance(buffer.owner, memref.ReinterpretCastOp | BufferSliceOp):
        buffer = buffer.owner.source
    return buffer
