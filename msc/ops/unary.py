"""Element-wise functions of one tensor. Those of real analysis give Float32 for integers, as in MindSpore."""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from typing import Any, TypeAlias

from msc.frontend import dtypes
from msc.frontend.dispatch import apply
from msc.frontend.errors import ApiTypeError
from msc.frontend.tensor import Tensor, tensor_method
from msc.ops.arithmetic import div, mul, sub
from msc.ops.operands import as_float, as_numbers, only_tensor
from msc.ops.primitive import operator

__all__ = [
    "ACos", "Abs", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Cos", "Cosh", "Erf", "Erfc", "Exp", "Expm1",
    "Floor", "Identity", "Inv", "Invert", "IsFinite", "IsInf", "IsNan", "Log", "Log1p", "LogicalNot", "Neg",
    "Reciprocal", "Rint", "Round", "Rsqrt", "Sigmoid", "Sign", "Sin", "Sinh", "Sqrt", "Square", "Tan", "Tanh", "Trunc",
    "abs", "absolute", "acos", "acosh", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctanh", "asin", "asinh",
    "atan", "atanh", "bitwise_not", "ceil", "cos", "cosh", "deg2rad", "erf", "erfc", "exp", "exp2", "expm1", "floor",
    "frac", "identity", "invert", "isfinite", "isinf", "isnan", "log", "log1p", "log2", "log10", "logical_not", "logit",
    "neg", "negative", "rad2deg", "reciprocal", "rint", "round", "rsqrt", "sigmoid", "sign", "sin", "sinh", "sqrt",
    "square", "tan", "tanh", "trunc",
]  # fmt: skip

Unary: TypeAlias = Callable[[Any], Tensor]


def _function(name: str, operation: str, *methods: str, convert: Callable[[Tensor], Tensor], doc: str) -> Unary:
    """The function of an operation: `convert` brings the operand to an element type that it takes."""

    def function(input: Any) -> Tensor:
        return apply(operation, convert(only_tensor(input, name)))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return tensor_method(*methods)(function)


def _real(name: str, doc: str, operation: str | None = None, *methods: str) -> Unary:
    """A function of real analysis: integers become Float32."""
    return _function(name, operation or name, *(methods or (name,)), convert=as_float, doc=doc)


def _number(name: str, doc: str, operation: str | None = None, *methods: str) -> Unary:
    """A function of numbers that keeps their element type."""
    return _function(name, operation or name, *(methods or (name,)), convert=as_numbers, doc=doc)


abs = _number("abs", "The absolute value.", "abs", "abs", "absolute", "__abs__")
neg = _number("neg", "The number with the other sign.", "neg", "neg", "negative", "__neg__")
sign = _number("sign", "-1, 0 or 1.")
square = _number("square", "x times x.")
exp = _real("exp", "e to the x.")
expm1 = _real("expm1", "e to the x, minus 1, exact near 0.")
log = _real("log", "The natural logarithm.")
log1p = _real("log1p", "The logarithm of 1 + x, exact near 0.")
sqrt = _real("sqrt", "The square root.")
rsqrt = _real("rsqrt", "1 / sqrt(x).")
reciprocal = _real("reciprocal", "1 / x.")
sin = _real("sin", "The sine.")
cos = _real("cos", "The cosine.")
tan = _real("tan", "The tangent.")
asin = _real("asin", "The arc sine.", "asin", "asin", "arcsin")
acos = _real("acos", "The arc cosine.", "acos", "acos", "arccos")
atan = _real("atan", "The arc tangent.", "atan", "atan", "arctan")
sinh = _real("sinh", "The hyperbolic sine.")
cosh = _real("cosh", "The hyperbolic cosine.")
tanh = _real("tanh", "The hyperbolic tangent.")
asinh = _real("asinh", "The inverse hyperbolic sine.", "asinh", "asinh", "arcsinh")
acosh = _real("acosh", "The inverse hyperbolic cosine.", "acosh", "acosh", "arccosh")
atanh = _real("atanh", "The inverse hyperbolic tangent.", "atanh", "atanh", "arctanh")
erf = _real("erf", "The error function.")
sigmoid = _real("sigmoid", "1 / (1 + e^-x).")
floor = _number("floor", "The largest integer not above x, in the element type of x.")
ceil = _number("ceil", "The smallest integer not below x, in the element type of x.")
trunc = _number("trunc", "The integer part of x, in the element type of x.")
rint = _number("rint", "The nearest integer, the even one of two.", "round", "rint")


def _rounding(function: Unary) -> Unary:
    """Integers are their own floor, ceiling and integer part."""

    def rounding(input: Any) -> Tensor:
        x = only_tensor(input, function.__name__)
        return function(x) if x.dtype.is_float else as_numbers(x)

    rounding.__name__ = rounding.__qualname__ = function.__name__
    rounding.__doc__ = function.__doc__
    return tensor_method(function.__name__)(rounding)


floor, ceil, trunc, rint = map(_rounding, (floor, ceil, trunc, rint))


@tensor_method("round")
def round(input: Tensor, *, decimals: int = 0) -> Tensor:
    """The nearest number with `decimals` digits behind the point, the even one of two."""
    x = only_tensor(input, "round")
    if not x.dtype.is_float:
        return x
    if decimals == 0:
        return apply("round", x)
    scale = 10.0**decimals
    return div(apply("round", mul(x, scale)), scale)


@tensor_method("erfc")
def erfc(input: Tensor) -> Tensor:
    """1 - erf(x)."""
    return sub(1.0, erf(input))


@tensor_method("exp2")
def exp2(input: Tensor) -> Tensor:
    """2 to the x."""
    return apply("pow", _two(input), as_float(only_tensor(input, "exp2")))


def _two(input: Tensor) -> Tensor:
    return Tensor(2.0, as_float(input).dtype)


@tensor_method("log2")
def log2(input: Tensor) -> Tensor:
    """The logarithm to base 2."""
    return div(log(input), math.log(2))


@tensor_method("log10")
def log10(input: Tensor) -> Tensor:
    """The logarithm to base 10."""
    return div(log(input), math.log(10))


@tensor_method("frac")
def frac(input: Tensor) -> Tensor:
    """What is behind the point: x - trunc(x)."""
    return sub(input, trunc(input))


@tensor_method("deg2rad")
def deg2rad(x: Tensor) -> Tensor:
    """Degrees in radians."""
    return mul(x, math.pi / 180)


@tensor_method("rad2deg")
def rad2deg(x: Tensor) -> Tensor:
    """Radians in degrees."""
    return mul(x, 180 / math.pi)


@tensor_method("logit")
def logit(input: Tensor, eps: float | None = None) -> Tensor:
    """log(x / (1 - x)), of x clipped to [eps, 1 - eps]."""
    x = as_float(only_tensor(input, "logit"))
    if eps is not None:
        x = apply("clip", x, min=builtins.float(eps), max=1.0 - eps)
    return apply("logit", x)


@tensor_method("isnan")
def isnan(input: Tensor) -> Tensor:
    """Whether each element is NaN."""
    return apply("is_nan", as_float(only_tensor(input, "isnan")))


@tensor_method("isinf")
def isinf(input: Tensor) -> Tensor:
    """Whether each element is infinite."""
    return apply("is_inf", as_float(only_tensor(input, "isinf")))


@tensor_method("isfinite")
def isfinite(input: Tensor) -> Tensor:
    """Whether each element is neither NaN nor infinite."""
    return apply("logical_not", apply("logical_or", isnan(input), isinf(input)))


@tensor_method("logical_not")
def logical_not(input: Tensor) -> Tensor:
    """Whether each element is false, or zero."""
    x = only_tensor(input, "logical_not")
    return apply("logical_not", apply("cast", x, dtype=dtypes.bool_) if x.dtype is not dtypes.bool_ else x)


@tensor_method("bitwise_not", "__invert__")
def bitwise_not(input: Tensor) -> Tensor:
    """All bits turned round; of a boolean, the other one. Raises MSC0812 for floats."""
    x = only_tensor(input, "bitwise_not")
    if x.dtype.is_float:
        raise ApiTypeError("MSC0812", f"bitwise_not takes integers and booleans, not {x.dtype}")
    return apply("logical_not" if x.dtype is dtypes.bool_ else "bitwise_not", x)


@tensor_method("__pos__", "identity")
def identity(input: Tensor) -> Tensor:
    """The tensor itself."""
    return input


absolute, negative = abs, neg
arcsin, arccos, arctan, arcsinh, arccosh, arctanh = asin, acos, atan, asinh, acosh, atanh
invert = bitwise_not

Neg = operator("Neg", neg)
Abs = operator("Abs", abs)
Sign = operator("Sign", sign)
Exp = operator("Exp", exp)
Expm1 = operator("Expm1", expm1)
Log = operator("Log", log)
Log1p = operator("Log1p", log1p)
Sqrt = operator("Sqrt", sqrt)
Rsqrt = operator("Rsqrt", rsqrt)
Reciprocal = operator("Reciprocal", reciprocal)
Inv = operator("Inv", reciprocal)
Square = operator("Square", square)
Sin = operator("Sin", sin)
Cos = operator("Cos", cos)
Tan = operator("Tan", tan)
Asin = operator("Asin", asin)
ACos = operator("ACos", acos)
Atan = operator("Atan", atan)
Sinh = operator("Sinh", sinh)
Cosh = operator("Cosh", cosh)
Tanh = operator("Tanh", tanh)
Asinh = operator("Asinh", asinh)
Acosh = operator("Acosh", acosh)
Atanh = operator("Atanh", atanh)
Erf = operator("Erf", erf)
Erfc = operator("Erfc", erfc)
Floor = operator("Floor", floor)
Ceil = operator("Ceil", ceil)
Trunc = operator("Trunc", trunc)
Round = operator("Round", round)
Rint = operator("Rint", rint)
Sigmoid = operator("Sigmoid", sigmoid)
IsNan = operator("IsNan", isnan)
IsInf = operator("IsInf", isinf)
IsFinite = operator("IsFinite", isfinite)
Identity = operator("Identity", identity)
LogicalNot = operator("LogicalNot", logical_not)
Invert = operator("Invert", bitwise_not)
