"""How wide elements are in registers."""

from __future__ import annotations

from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float64Type, IndexType, IntegerType
from xdsl.ir import Attribute

from msc.dialects.loop import ForOp


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
    """The widest element that the loop's body computes on."""
    return max((bits_of(r.type) for op in loop.body.block.ops for r in op.results), default=32)
