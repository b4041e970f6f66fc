"""Vectors, and how wide their elements are in registers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TypeVar, cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float64Type, IndexType, IntegerType, VectorType
from xdsl.ir import Attribute, Operation, SSAValue

from msc.dialects.loop import ApplyOp, ForOp, StoreOp

E = TypeVar("E", bound=Attribute)


def lanes_of(element: E, lanes: int) -> VectorType[E]:
    """The vector of so many elements, made once: making it takes longer than an operation that results in it."""
    return cast("VectorType[E]", _vector(element, lanes))


@cache
def _vector(element: Attribute, lanes: int) -> VectorType[Attribute]:
    return VectorType(element, [lanes])


def bits_of(type_: Attribute) -> int:
    """Bits that a value of a type takes in a register; 1-bit values are masks and take what they are compared from."""
    match type_:
        case Float64Type():
            return 64
        case Float16Type() | BFloat16Type():
            return 16
        case IntegerType():
            return type_.width.data if type_.width.data > 1 else 8
        case IndexType():
            return 64
        case _:
            return 32


def widest_bits(loop: ForOp) -> int:
    """The widest element that the loop's body computes on, numbers of iterations aside that are narrowed as scalars.

    What is the same in all iterations and not stored stays scalar, as places do that are data.
    """
    varying = list(_varying(loop))
    computed = [result.type for op in varying if not _is_narrowed(op) for result in op.results]
    stored = [op.value.type for op in varying if isinstance(op, StoreOp)]
    return max(map(bits_of, computed + stored), default=32)


def _varying(loop: ForOp) -> Iterator[Operation]:
    """The operations of a loop's body whose results depend on its variable."""
    values: set[SSAValue] = {loop.variable}
    for op in loop.body.block.ops:
        if not values.isdisjoint(op.operands):
            values.update(op.results)
            yield op


def _is_narrowed(op: Operation) -> bool:
    uses = (use.operation for result in op.results for use in result.uses)
    return isinstance(op, ApplyOp | arith.IndexCastOp) and all(
        isinstance(user, arith.IndexCastOp | arith.TruncIOp) for user in uses
    )
