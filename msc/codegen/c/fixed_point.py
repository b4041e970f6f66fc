"""Fixed-point arithmetic that processors have instructions for: rounded upper halves of products, saturation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Operation, SSAValue

from msc.codegen.c.prelude import Prelude
from msc.codegen.c.types import CType, value_type
from msc.codegen.c.values import CExpression, call

_Op = TypeVar("_Op", bound=Operation)


@dataclass(frozen=True)
class Fused:
    """One function for a truncation and the operations before it: its name, its type, its operands, what it takes in.

    An operand that is a number was a constant of 64 bits.
    """

    name: str
    base: str
    result: str
    operands: Sequence[SSAValue | int]
    inner: Sequence[SSAValue]

    def expression(self, prelude: Prelude, use: Callable[[SSAValue], CExpression]) -> CExpression:
        """The call; `use` gives the expression of a value."""
        word = CType("i32")
        arguments = [CExpression(f"({v})", word) if isinstance(v, int) else use(v) for v in self.operands]
        return call(prelude.function(self.name, CType(self.base)), CType(self.result), *arguments)


def fused(op: Operation) -> Fused | None:
    """The function that a truncation is with what stands before it, all used there alone; None for others."""
    if type(op) is not arith.TruncIOp:
        return None
    return _upper_half(op) or _saturated(op)


def taken_in(function: Operation) -> Iterator[SSAValue]:
    """The values of a function that are part of such functions."""
    for op in function.walk():
        found = fused(op)
        if found is not None:
            yield from found.inner


def _upper_half(op: arith.TruncIOp) -> Fused | None:
    """`(a * b + 2^31) >> 32` of products of i32 in i64."""
    shift = _alone(op.input, arith.ShRSIOp, op)
    moved = _alone(shift.lhs, arith.AddiOp, op) if shift is not None and _number(shift.rhs) == 32 else None
    product = _alone(moved.lhs, arith.MuliOp, op) if moved is not None and _number(moved.rhs) == 1 << 31 else None
    if shift is None or moved is None or product is None or _bits(op.result) != 32:
        return None
    operands, inner = list[SSAValue | int](), [shift.result, moved.result, product.result]
    for factor in product.operands:
        wide, number = _alone(factor, arith.ExtSIOp, op), _number(factor)
        if wide is not None and _bits(wide.input) == 32:
            operands.append(wide.input)
            inner.append(wide.result)
        elif number is not None and -(1 << 31) < number < 1 << 31:
            operands.append(number)
        else:
            return None
    return Fused("mulhr", "i32", "i32", operands, inner)


def _saturated(op: arith.TruncIOp) -> Fused | None:
    """`min(max(x, low), high)` of i32, where these are the ends of the type of the result."""
    bits = _bits(op.result)
    upper = _alone(op.input, arith.MinSIOp, op)
    lower = _alone(upper.lhs, arith.MaxSIOp, op) if upper is not None else None
    if upper is None or lower is None or bits not in (8, 16) or _bits(op.input) != 32:
        return None
    if _number(upper.rhs) != (1 << (bits - 1)) - 1 or _number(lower.rhs) != -(1 << (bits - 1)):
        return None
    return Fused("saturated", f"i{bits}", f"i{bits}", [lower.lhs], [upper.result, lower.result])


def _alone(value: SSAValue, kind: type[_Op], user: Operation) -> _Op | None:
    """The operation of a value, if it is of a kind and what `user` is made of alone reads it."""
    op = value.owner
    if not isinstance(op, kind) or op.parent is not user.parent or len(list(value.uses)) != 1:
        return None
    return op


def _number(value: SSAValue) -> int | None:
    known = value.owner.value if isinstance(value.owner, arith.ConstantOp) else None
    return known.value.data if isinstance(known, IntegerAttr) else None


def _bits(value: SSAValue) -> int:
    return value_type(value.type).bits
