"""Element-wise operations. NumPy's IEEE behaviour is the meaning: NaN propagates, integers wrap."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, cast

import numpy as np

from msc.dialects.arrays import Array, is_integer_array, numpy_dtype
from msc.dialects.ms.base import MsOp
from msc.interp.registry import meaning


def erf(x: Array) -> Array:
    """The error function, computed in double precision."""
    flat = x.astype(np.float64).ravel()
    return np.fromiter(map(math.erf, flat.tolist()), np.float64, flat.size).reshape(x.shape).astype(x.dtype)


def sigmoid(x: Array) -> Array:
    """1 / (1 + e^-x), without overflow on either side."""
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + small), small / (1 + small))


def softplus(x: Array) -> Array:
    """log(1 + e^x), without overflow."""
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def converted(x: Array, dtype: np.dtype[Any]) -> Array:
    """`x.astype(dtype)`, with one meaning of floats that do not fit an integer type, on every machine.

    A float becomes an i32 (for i32 and smaller types) or i64 (for i64 and u32), which is the least one for NaN and what
    does not fit; what is narrower keeps its last bits. u64 is i64, and from 2^63 on that of x - 2^63, plus 2^63.
    These are the conversions of x86.
    """
    if x.dtype.kind in "iub" or dtype.kind not in "iu":
        return x.astype(dtype)
    whole = np.trunc(x.astype(np.float64))
    if dtype == np.uint64:
        upper = whole >= 2.0**63
        lower = _signed(whole - 2.0**63 * upper, np.dtype(np.int64)).astype(np.uint64)
        return lower + upper * np.uint64(2**63)
    return _signed(whole, np.dtype(np.int64 if dtype.itemsize == 8 or dtype == np.uint32 else np.int32)).astype(dtype)


def _signed(whole: Array, dtype: np.dtype[Any]) -> Array:
    """Whole floats as signed integers; the least one for what does not fit, and NaN."""
    bits = 8 * dtype.itemsize - 1
    fits = (whole >= -(2.0**bits)) & (whole < 2.0**bits)
    return np.where(fits, np.where(fits, whole, 0).astype(dtype), dtype.type(-(2**bits)))


def truncating_divide(a: Array, b: Array) -> Array:
    """A / b; integers round towards zero as in C, and division by zero gives 0."""
    if not is_integer_array(a):
        return a / b
    quotient, remainder = np.floor_divide(a, b), np.remainder(a, b)
    return quotient + ((remainder != 0) & ((a < 0) != (b < 0))).astype(a.dtype)


def floor_divide(a: Array, b: Array) -> Array:
    """floor(a / b); for floats the floor of the rounded quotient, as MindSpore's FloorDiv."""
    return np.floor_divide(a, b) if is_integer_array(a) else np.floor(a / b)


def power(a: Array, b: Array) -> Array:
    """A to the b; an integer to a negative power is the truncated reciprocal, as in C's integer arithmetic."""
    if not is_integer_array(a):
        return np.power(a, b)
    negative = b < 0
    positive = np.power(a, np.where(negative, 0, b).astype(a.dtype))
    parity = np.where((b & 1) == 1, a, 1)
    return np.where(negative, np.where(np.abs(a) == 1, parity, 0), positive).astype(a.dtype)


def _unary(function: Callable[[Array], Array]) -> Callable[[MsOp, Array], Array]:
    return lambda op, x: function(x)


def _binary(function: Callable[[Array, Array], Array]) -> Callable[[MsOp, Array, Array], Array]:
    return lambda op, a, b: function(a, b)


FUNCTIONS: dict[str, Callable[[Array], Array]] = {
    "exp": np.exp,
    "expm1": np.expm1,
    "log": np.log,
    "log1p": np.log1p,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
}
"""Those that the tensor level, scalar bodies and the `math` dialect call by the same names."""

UNARY: dict[str, Callable[[Array], Array]] = {
    **FUNCTIONS,
    "neg": np.negative,
    "abs": np.abs,
    "sign": np.sign,
    "reciprocal": lambda x: 1 / x,
    "square": np.square,
    "erf": erf,
    "sigmoid": sigmoid,
    "softplus": softplus,
    "logit": lambda x: np.log(x / (1 - x)),
    "round": np.rint,
    "relu": lambda x: np.maximum(x, 0),
    "logical_not": np.logical_not,
    "bitwise_not": np.invert,
    "is_nan": np.isnan,
    "is_inf": np.isinf,
    "identity": lambda x: x,
    "stop_gradient": lambda x: x,
}

BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "barrier": lambda x, after: x,
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "mul_no_nan": lambda a, b: np.where(a == 0, a.dtype.type(0), a * b),
    "xlogy": lambda a, b: np.where(a == 0, a.dtype.type(0), a * np.log(b)),
    "log_add_exp": np.logaddexp,
    "binary_cross_entropy": lambda x, y: -(y * np.maximum(np.log(x), -100) + (1 - y) * np.maximum(np.log(1 - x), -100)),
    "div": truncating_divide,
    "floor_div": floor_divide,
    "mod": np.remainder,
    "rem": np.fmod,
    "pow": power,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "atan2": np.arctan2,
    "equal": np.equal,
    "not_equal": np.not_equal,
    "less": np.less,
    "less_equal": np.less_equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
    "logical_and": np.logical_and,
    "logical_or": np.logical_or,
    "logical_xor": np.logical_xor,
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
    "shift_left": np.left_shift,
    "shift_right": np.right_shift,
}

for _name, _one in UNARY.items():
    meaning(_name)(_unary(_one))
for _name, _two in BINARY.items():
    meaning(_name)(_binary(_two))


@meaning("select")
def _select(op: MsOp, condition: Array, a: Array, b: Array) -> Array:
    return np.where(condition, a, b)


@meaning("cast")
def _cast(op: MsOp, x: Array) -> Array:
    """Floats truncate to integers, a number is true when it is not zero."""
    return converted(x, numpy_dtype(op.result_dtype())) if op.result_dtype() != "i1" else cast(Array, x != 0)


@meaning("bit_cast")
def _bit_cast(op: MsOp, x: Array) -> Array:
    """The bits as they are stored; booleans are bytes."""
    target = numpy_dtype(op.result_dtype())
    stored = np.ascontiguousarray(x.reshape(-1), numpy_dtype(op.dtype(0)))
    if target == np.bool_:
        return cast(Array, stored.view(np.uint8) != 0).reshape(x.shape)
    return stored.view(target).reshape(x.shape)
