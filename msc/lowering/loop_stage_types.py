"""What values of the loop stage may be: scalars, vectors of them, and buffers that lie in memory as C arrays do."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import func, memref
from xdsl.dialects.builtin import DYNAMIC_INDEX, IndexType, MemRefType, NoneAttr, VectorType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.utils.hints import isa

from msc.dialects import loop
from msc.dialects.element_types import BYTES, dtype_name

_GIVE_BUFFERS = (memref.AllocaOp, memref.ViewOp, memref.ReinterpretCastOp, loop.EntryOp)


def is_scalar(type_: Attribute) -> bool:
    """An index, a signless integer or a float that msc computes on."""
    name = dtype_name(type_)
    return isinstance(type_, IndexType) or (name in BYTES and not name.startswith("u"))


def is_buffer(type_: Attribute) -> bool:
    """A memref of known shape, its elements in order without gaps."""
    if not isa(type_, MemRefType[Attribute]) or DYNAMIC_INDEX in type_.get_shape():
        return False
    plain = isinstance(type_.layout, NoneAttr) and isinstance(type_.memory_space, NoneAttr)
    return plain and is_scalar(type_.element_type) and not isinstance(type_.element_type, IndexType)


def _is_vector(type_: Attribute) -> bool:
    return isa(type_, VectorType[Attribute]) and type_.get_num_dims() == 1 and is_scalar(type_.element_type)


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
