"""Element-wise arithmetic of two operands, tensors or Python numbers, that broadcast as in NumPy.

Element types come together as in MindSpore: of tensors the higher of boolean, integer and float, then the wider one; a
Python number changes a tensor's element type only if it is of a higher category.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from msc.frontend import dtypes
from msc.frontend.dispatch import apply
from msc.frontend.tensor import Tensor, tensor_method
from msc.ops.operands import Operand, as_float, as_numbers, cast, pair

__all__ = ["add", "atan2", "div", "floor_divide", "floor_mod", "fmod", "maximum", "minimum", "mul", "pow", "sub"]


@tensor_method("add", "__add__")
def add(input: Operand, other: Operand, alpha: Operand = 1) -> Tensor:
    """Input + alpha other."""
    a, b = pair("add", input, other)
    if alpha != 1:
        b = mul(b, alpha)
    if a.dtype is dtypes.bool_:
        return apply("logical_or", a, b)
    return apply("add", a, b)


@tensor_method("sub", "subtract", "__sub__")
def sub(input: Operand, other: Operand, alpha: Operand = 1) -> Tensor:
    """Input - alpha other."""
    a, b = pair("sub", input, other)
    return apply("sub", as_numbers(a), as_numbers(b if alpha == 1 else mul(b, alpha)))


@tensor_method("mul", "multiply", "__mul__")
def mul(input: Operand, other: Operand) -> Tensor:
    """Input times other."""
    a, b = pair("mul", input, other)
    return apply("logical_and" if a.dtype is dtypes.bool_ else "mul", a, b)


@tensor_method("div", "divide", "true_divide", "__truediv__")
def div(input: Operand, other: Operand, *, rounding_mode: str | None = None) -> Tensor:
    """Input / other, of integers in Float32; rounded by `rounding_mode` "floor" or "trunc"."""
    if rounding_mode == "floor":
        return floor_divide(input, other)
    a, b = pair("div", input, other)
    quotient = apply("div", as_float(a), as_float(b))
    return quotient if rounding_mode is None else cast(apply("trunc", quotient), a.dtype)


@tensor_method("floor_divide", "floor_div", "__floordiv__")
def floor_divide(input: Operand, other: Operand) -> Tensor:
    """The largest integer not above input / other."""
    a, b = pair("floor_divide", input, other)
    return apply("floor_div", as_numbers(a), as_numbers(b))


@tensor_method("remainder", "floor_mod", "__mod__")
def floor_mod(x: Operand, y: Operand) -> Tensor:
    """X - floor(x / y) y, which has the sign of y; as Python's `%`."""
    a, b = pair("floor_mod", x, y)
    return apply("mod", as_numbers(a), as_numbers(b))


@tensor_method("__divmod__")
def floor_divmod(x: Operand, y: Operand) -> tuple[Tensor, Tensor]:
    """`divmod(x, y)`: floor(x / y), and what remains, which has the sign of y."""
    return floor_divide(x, y), floor_mod(x, y)


@tensor_method("fmod")
def fmod(input: Operand, other: Operand) -> Tensor:
    """Input - trunc(input / other) other, which has the sign of input; as C's `fmod`."""
    a, b = pair("fmod", input, other)
    return apply("rem", as_numbers(a), as_numbers(b))


@tensor_method("pow", "__pow__")
def pow(input: Operand, exponent: Operand) -> Tensor:
    """Input to the power of exponent."""
    a, b = pair("pow", input, exponent)
    return apply("pow", as_numbers(a), as_numbers(b))


@tensor_method("maximum")
def maximum(input: Operand, other: Operand) -> Tensor:
    """The larger one; NaN if one is."""
    a, b = pair("maximum", input, other)
    return apply("logical_or" if a.dtype is dtypes.bool_ else "maximum", a, b)


@tensor_method("minimum")
def minimum(input: Operand, other: Operand) -> Tensor:
    """The smaller one; NaN if one is."""
    a, b = pair("minimum", input, other)
    return apply("logical_and" if a.dtype is dtypes.bool_ else "minimum", a, b)


@tensor_method("atan2")
def atan2(input: Operand, other: Operand) -> Tensor:
    """The angle of the point (other, input), between -pi and pi."""
    a, b = pair("atan2", input, other)
    return apply("atan2", as_float(a), as_float(b))


ResultT = TypeVar("ResultT")


def reflected(function: Callable[[Any, Any], ResultT]) -> Callable[[Any, Any], ResultT]:
    """The operator with its operands exchanged: `__radd__` and the like."""

    def operator(self: Tensor, other: Any) -> ResultT:
        return function(other, self)

    return operator


for _name, _function in {
    "__radd__": add,
    "__rsub__": sub,
    "__rmul__": mul,
    "__rtruediv__": div,
    "__rfloordiv__": floor_divide,
    "__rmod__": floor_mod,
    "__rpow__": pow,
    "__rdivmod__": floor_divmod,
}.items():
    tensor_method(_name)(reflected(_function))
