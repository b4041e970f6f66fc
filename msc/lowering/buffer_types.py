"""Tensors as buffers: the memref type of a tensor, its bytes, and views that share them."""

from __future__ import annotations

from math import prod

from xdsl.dialects import memref
from xdsl.dialects.builtin import IntegerType, MemRefType, Signedness, TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.utils.hints import isa

from msc.dialects.element_types import BYTES, dtype_name
from msc.dialects.loop import EntryOp
from msc.ir.errors import DtypeConflict
from msc.ir.typed import memref_type, static_shape


def storage_type(element: Attribute) -> Attribute:
    """The element type in a buffer: integers are signless there, signedness is in the operations."""
    if isa(element, IntegerType[int, Signedness]) and element.signedness.data is not Signedness.SIGNLESS:
        return IntegerType(element.width.data)
    return element


def buffer_type(tensor: TensorType[Attribute]) -> MemRefType[Attribute]:
    """The contiguous memref of a tensor's shape; raises ShapeConflict if a dimension is not known."""
    return MemRefType(storage_type(tensor.element_type), static_shape(tensor))


def byte_size(buffer: SSAValue | Attribute) -> int:
    """Bytes of a memref of known shape; a boolean takes one. Raises DtypeConflict for other element types."""
    type_ = memref_type(buffer)
    name = dtype_name(type_.element_type)
    if name not in BYTES:
        raise DtypeConflict(f"{type_.element_type} has no size in memory")
    return BYTES[name] * prod(static_shape(type_))


def contiguous_view(buffer: SSAValue, type_: MemRefType[Attribute]) -> memref.ReinterpretCastOp:
    """The bytes of a contiguous buffer under another shape of as many elements."""
    shape = static_shape(type_)
    strides = [prod(shape[axis + 1 :]) for axis in range(len(shape))]
    return memref.ReinterpretCastOp(buffer, [], [], [], [0], list(shape), strides, type_)


def root_buffer(buffer: SSAValue) -> SSAValue:
    """The buffer whose bytes a chain of views and entries shows."""
    while isinstance(buffer.owner, memref.ReinterpretCastOp | EntryOp):
        buffer = buffer.owner.source
    return buffer
