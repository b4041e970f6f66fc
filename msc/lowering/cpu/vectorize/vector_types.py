"""How wide elements are in registers."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float64Type, IndexType, IntegerType
from xdsl.ir import Attribute, Operation

from msc.dialects.loop import ApplyOp, ForOp


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
    """The widest element that the loop's body computes on, numbers of iterations aside that are narrowed as scalars."""
    computed = (op for op in loop.body.block.ops if not _is_narrowed(op))
    return max((bits_of(r.type) for op in computed for r in op.results), default=32)


def _is_narrowed(op: Operation) -> bool:
    uses = (use.operation for result in op.results for use in result.uses)
    return isinstance(op, ApplyOp | arith.IndexCastOp) and all(
        isinstance(user, arith.IndexCastOp | arith.TruncIOp) for user in uses
    )
