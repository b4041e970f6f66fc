"""How many bytes tensors and buffers have, and a computation must move at least: each operand and each result once."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from xdsl.dialects import memref
from xdsl.ir import Attribute, Operation, SSAValue

from msc.analysis.constancy import is_constant
from msc.dialects.element_types import BYTES, dtype_name
from msc.ir.errors import DtypeConflict
from msc.ir.typed import memref_type, static_shape, tensor_type


def bytes_of(value: SSAValue) -> int:
    """The size of a tensor of static shape."""
    type_ = tensor_type(value)
    return type_.element_count() * BYTES[dtype_name(type_.element_type) or ""]


def constant_bytes(values: Iterable[SSAValue]) -> int:
    """The size of the distinct ones of some values that are constant: it passes between two calls of a reader."""
    return _total({value for value in values if is_constant(value)})


def byte_size(buffer: SSAValue | Attribute) -> int:
    """Bytes of a memref of known shape; a boolean takes one. Raises DtypeConflict for other element types."""
    type_ = memref_type(buffer)
    name = dtype_name(type_.element_type)
    if name not in BYTES:
        raise DtypeConflict(f"{type_.element_type} has no size in memory")
    return BYTES[name] * prod(static_shape(type_))


def stack_bytes(op: Operation) -> int:
    """What local arrays (memref.alloca) in an operation take at most at a time: loops side by side share it."""
    blocks = [block for region in op.regions for block in region.blocks]
    return max((_stack_of(block.ops) for block in blocks), default=0)


def _stack_of(ops: Iterable[Operation]) -> int:
    inside, own = 0, 0
    for op in ops:
        if op.regions:
            inside = max(inside, stack_bytes(op))
        elif isinstance(op, memref.AllocaOp):
            own += byte_size(op.memref)
    return own + inside


def bytes_read(op: Operation) -> int:
    """The size of the distinct operands of an operation or kernel."""
    return _total(dict.fromkeys(op.operands))


def bytes_written(op: Operation) -> int:
    """The size of the results of an operation or kernel."""
    return _total(op.results)


def traffic(op: Operation) -> int:
    """What an operation or kernel moves to and from memory if everything in between stays in caches."""
    return bytes_read(op) + bytes_written(op)


def _total(values: Iterable[SSAValue]) -> int:
    return sum(map(bytes_of, values))
