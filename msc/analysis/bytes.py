"""How many bytes a computation must move at least: each operand read once, each result written once."""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.ir import Operation, SSAValue

from msc.dialects.element_types import BYTES, dtype_name
from msc.ir.typed import tensor_type


def bytes_of(value: SSAValue) -> int:
    """The size of a tensor of static shape."""
    type_ = tensor_type(value)
    return type_.element_count() * BYTES[dtype_name(type_.element_type) or ""]


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
