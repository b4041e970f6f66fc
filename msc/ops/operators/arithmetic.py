"""Operators on elements: arithmetic, comparison, logic, activations."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

from msc.frontend.dispatch import apply
from msc.frontend.tensor import Tensor
from msc.ops import activation as act
from msc.ops import arithmetic as ar
from msc.ops import comparison as cmp
from msc.ops import unary as un
from msc.ops.operands import as_float, pair
from msc.ops.primitive import operator
from msc.ops.selection import where
from msc.ops.shapes import cast as convert

__all__ = [
    "Add", "AddN", "ApproximateEqual", "Atan2", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Cast", "CeLU", "Div",
    "DivNoNan", "Divs", "Elu", "Equal", "FastGeLU", "FloorDiv", "FloorMod", "GeLU", "Greater", "GreaterEqual",
    "HShrink", "HSigmoid", "HSwish", "IsClose", "Lerp", "Less", "LessEqual", "LogSoftmax", "LogicalAnd", "LogicalOr",
    "LogicalXor", "Maximum", "Minimum", "Mish", "Mod", "Mul", "Muls", "NotEqual", "PReLU", "Pow", "ReLU", "ReLU6",
    "RealDiv", "SeLU", "Select", "SiLU", "SoftShrink", "Softmax", "Softplus", "Softsign", "SquaredDifference", "Sub",
    "TensorAdd", "Xlogy", "add_n", "div_no_nan", "lerp", "xlogy",
]  # fmt: skip


def add_n(inputs: Sequence[Tensor]) -> Tensor:
    """The sum of tensors."""
    return reduce(ar.add, inputs)


def _squared_difference(x: Any, y: Any) -> Tensor:
    """(x - y) squared."""
    return un.square(ar.sub(x, y))


def div_no_nan(x: Any, y: Any) -> Tensor:
    """X / y, 0 where y is 0."""
    zero = cmp.equal(y, 0)
    return where(zero, 0.0, ar.div(x, where(zero, 1.0, y)))


def xlogy(input: Any, other: Any) -> Tensor:
    """X log(y), 0 where x is 0."""
    return apply("xlogy", *map(as_float, pair("xlogy", input, other)))


def lerp(input: Tensor, end: Tensor, weight: Any) -> Tensor:
    """Input + weight (end - input)."""
    return ar.add(input, ar.mul(weight, ar.sub(end, input)))


def _softmax(x: Tensor, axis: Any) -> Tensor:
    """exp(x) / sum of exp(x) along an axis."""
    return act.softmax(x, axis if isinstance(axis, int) else axis[0])


def _gelu(x: Tensor) -> Tensor:
    """X times the probability that a normal number is less than x, by tanh."""
    return act.gelu(x, "tanh")


def _approximate_equal(x: Any, y: Any, tolerance: float) -> Tensor:
    """Whether |x - y| is less than a tolerance."""
    return cmp.less(un.abs(ar.sub(x, y)), tolerance)


def _isclose(x: Any, y: Any, rtol: float, atol: float, equal_nan: bool) -> Tensor:
    """Whether |x - y| <= atol + rtol |y|."""
    return cmp.isclose(x, y, rtol, atol, equal_nan)


def _cast(x: Any, dtype: Any) -> Tensor:
    """The elements in another element type."""
    return convert(x if isinstance(x, Tensor) else Tensor(x), dtype)


Add = operator("Add", ar.add)
TensorAdd = operator("TensorAdd", ar.add)
AddN = operator("AddN", add_n)
Sub = operator("Sub", ar.sub)
Mul = operator("Mul", ar.mul)
Muls = operator("Muls", ar.mul)
Div = operator("Div", ar.div)
Divs = operator("Divs", ar.div)
RealDiv = operator("RealDiv", ar.div)
FloorDiv = operator("FloorDiv", ar.floor_divide)
FloorMod = operator("FloorMod", ar.floor_mod)
Mod = operator("Mod", ar.fmod)
Pow = operator("Pow", ar.pow)
Maximum = operator("Maximum", ar.maximum)
Minimum = operator("Minimum", ar.minimum)
Atan2 = operator("Atan2", ar.atan2)
SquaredDifference = operator("SquaredDifference", _squared_difference)
DivNoNan = operator("DivNoNan", div_no_nan)
Xlogy = operator("Xlogy", xlogy)
Lerp = operator("Lerp", lerp)
Equal = operator("Equal", cmp.equal)
NotEqual = operator("NotEqual", cmp.not_equal)
Less = operator("Less", cmp.less)
LessEqual = operator("LessEqual", cmp.less_equal)
Greater = operator("Greater", cmp.greater)
GreaterEqual = operator("GreaterEqual", cmp.greater_equal)
LogicalAnd = operator("LogicalAnd", cmp.logical_and)
LogicalOr = operator("LogicalOr", cmp.logical_or)
LogicalXor = operator("LogicalXor", cmp.logical_xor)
BitwiseAnd = operator("BitwiseAnd", cmp.bitwise_and)
BitwiseOr = operator("BitwiseOr", cmp.bitwise_or)
BitwiseXor = operator("BitwiseXor", cmp.bitwise_xor)
ApproximateEqual = operator("ApproximateEqual", _approximate_equal, "tolerance", tolerance=1e-05)
IsClose = operator("IsClose", _isclose, "rtol atol equal_nan", rtol=1e-05, atol=1e-08, equal_nan=True)
Cast = operator("Cast", _cast)
Select = operator("Select", where)
ReLU = operator("ReLU", act.relu)
ReLU6 = operator("ReLU6", act.relu6)
Elu = operator("Elu", act.elu, "alpha")
SeLU = operator("SeLU", act.selu)
GeLU = operator("GeLU", _gelu)
FastGeLU = operator("FastGeLU", act.fast_gelu)
SiLU = operator("SiLU", act.silu)
Mish = operator("Mish", act.mish)
HSwish = operator("HSwish", act.hardswish)
HSigmoid = operator("HSigmoid", act.hardsigmoid)
Softplus = operator("Softplus", act.softplus)
Softsign = operator("Softsign", act.softsign)
PReLU = operator("PReLU", act.prelu)
Softmax = operator("Softmax", _softmax, "axis", axis=-1)
LogSoftmax = operator("LogSoftmax", act.log_softmax, "axis")
HShrink = operator("HShrink", act.hardshrink, "lambd")
SoftShrink = operator("SoftShrink", act.softshrink, "lambd")
CeLU = operator("CeLU", act.celu, "alpha")
