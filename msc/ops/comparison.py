"""Comparisons, logic and bits of two operands that broadcast."""

from __future__ import annotations

from typing import Any

from msc.frontend import dtypes
from msc.frontend.dispatch import apply
from msc.frontend.errors import ApiTypeError
from msc.frontend.tensor import Tensor, tensor_method
from msc.ops.arithmetic import add, mul, reflected, sub
from msc.ops.operands import Operand, as_numbers, cast, is_data, only_tensor, pair
from msc.ops.unary import abs, bitwise_not, isnan

__all__ = [
    "bitwise_and", "bitwise_left_shift", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "eq", "equal", "ge",
    "greater", "greater_equal", "gt", "isclose", "le", "less", "less_equal", "logical_and", "logical_or",
    "logical_xor", "lt", "ne", "not_equal",
]  # fmt: skip


@tensor_method("eq", "equal")
def equal(input: Operand, other: Operand) -> Tensor:
    """Whether both are equal."""
    return apply("equal", *pair("equal", input, other))


@tensor_method("ne", "not_equal")
def not_equal(input: Operand, other: Operand) -> Tensor:
    """Whether the two differ."""
    return apply("not_equal", *pair("not_equal", input, other))


@tensor_method("__eq__")
def _equals(self: Tensor, other: Any) -> Any:
    return equal(self, other) if isinstance(other, Tensor) or is_data(other) else NotImplemented


@tensor_method("__ne__")
def _differs(self: Tensor, other: Any) -> Any:
    return not_equal(self, other) if isinstance(other, Tensor) or is_data(other) else NotImplemented


def _ordered(name: str, input: Operand, other: Operand) -> Tensor:
    a, b = pair(name, input, other)
    return apply(name, as_numbers(a), as_numbers(b))


@tensor_method("lt", "less", "__lt__")
def less(input: Operand, other: Operand) -> Tensor:
    """Whether input < other."""
    return _ordered("less", input, other)


@tensor_method("le", "less_equal", "__le__")
def less_equal(input: Operand, other: Operand) -> Tensor:
    """Whether input <= other."""
    return _ordered("less_equal", input, other)


@tensor_method("gt", "greater", "__gt__")
def greater(input: Operand, other: Operand) -> Tensor:
    """Whether input > other."""
    return _ordered("greater", input, other)


@tensor_method("ge", "greater_equal", "__ge__")
def greater_equal(input: Operand, other: Operand) -> Tensor:
    """Whether input >= other."""
    return _ordered("greater_equal", input, other)


eq, ne, lt, le, gt, ge = equal, not_equal, less, less_equal, greater, greater_equal


def _logical(name: str, input: Any, other: Any) -> Tensor:
    a, b = only_tensor(input, name), only_tensor(other, name, "other")
    return apply(name, cast(a, dtypes.bool_), cast(b, dtypes.bool_))


@tensor_method("logical_and")
def logical_and(input: Operand, other: Operand) -> Tensor:
    """Whether both are true."""
    return _logical("logical_and", input, other)


@tensor_method("logical_or")
def logical_or(input: Operand, other: Operand) -> Tensor:
    """Whether one or both are true."""
    return _logical("logical_or", input, other)


@tensor_method("logical_xor")
def logical_xor(input: Operand, other: Operand) -> Tensor:
    """Whether exactly one is true."""
    return _logical("logical_xor", input, other)


def _bitwise(word: str, input: Operand, other: Operand) -> Tensor:
    a, b = pair(f"bitwise_{word}", input, other)
    if a.dtype.is_float:
        raise ApiTypeError("MSC0812", f"bitwise_{word} takes integers and booleans, not {a.dtype}")
    return apply(f"{'logical' if a.dtype is dtypes.bool_ else 'bitwise'}_{word}", a, b)


@tensor_method("bitwise_and", "__and__", "__rand__")
def bitwise_and(input: Operand, other: Operand) -> Tensor:
    """Bits that both have."""
    return _bitwise("and", input, other)


@tensor_method("bitwise_or", "__or__", "__ror__")
def bitwise_or(input: Operand, other: Operand) -> Tensor:
    """Bits that one or both have."""
    return _bitwise("or", input, other)


@tensor_method("bitwise_xor", "__xor__", "__rxor__")
def bitwise_xor(input: Operand, other: Operand) -> Tensor:
    """Bits that exactly one has."""
    return _bitwise("xor", input, other)


@tensor_method("bitwise_left_shift", "__lshift__")
def bitwise_left_shift(input: Operand, other: Operand) -> Tensor:
    """Input moved left by other bits."""
    return apply("shift_left", *pair("bitwise_left_shift", input, other))


@tensor_method("bitwise_right_shift", "__rshift__")
def bitwise_right_shift(input: Operand, other: Operand) -> Tensor:
    """Input moved right by other bits; signed integers keep the sign."""
    return apply("shift_right", *pair("bitwise_right_shift", input, other))


tensor_method("__rlshift__")(reflected(bitwise_left_shift))
tensor_method("__rrshift__")(reflected(bitwise_right_shift))


@tensor_method("isclose")
def isclose(input: Operand, other: Operand, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor:
    """Whether |input - other| <= atol + rtol |other|; equal infinities are close, NaN to NaN if `equal_nan`."""
    a, b = pair("isclose", input, other)
    near = less_equal(abs(sub(a, b)), add(mul(abs(b), rtol), atol))
    same = logical_or(equal(a, b), logical_and(near, logical_not_infinite(b)))
    return logical_or(same, logical_and(isnan(a), isnan(b))) if equal_nan and a.dtype.is_float else same


def logical_not_infinite(x: Tensor) -> Tensor:
    """Whether each element is not infinite; true of all integers."""
    return bitwise_not(apply("is_inf", x)) if x.dtype.is_float else equal(x, x)
