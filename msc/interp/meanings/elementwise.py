"""Element-wise operations. NumPy's IEEE behaviour is the meaning: NaN propagates, integers wrap."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np
from xdsl.ir.affine import AffineMap

from msc.dialects.arrays import Array, dtype_text, is_integer_array, numpy_dtype
from msc.dialects.ms.base import MsOp
from msc.interp.registry import meaning
from msc.poly.scalar import OPERATORS, Apply, Constant, Read, Scalar, ScalarOperator


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


def _of_floats(function: Callable[[float], float]) -> Callable[[Array], Array]:
    """A function of Python's floats on arrays, computed in double precision."""

    def on_arrays(x: Array) -> Array:
        flat = x.astype(np.float64).ravel()
        return np.fromiter(map(function, flat.tolist()), np.float64, flat.size).reshape(x.shape).astype(x.dtype)

    return on_arrays


def _inverse_root(x: Array) -> Array:
    return 1 / np.sqrt(x)


_OWN: dict[str, Callable[..., Array]] = {
    "sigmoid": sigmoid, "softplus": softplus, "rsqrt": _inverse_root, "div": truncating_divide, "pow": power,
}  # fmt: skip
"""Scalar operators that are no function of NumPy."""


def _meaning_of(operator: ScalarOperator) -> Callable[..., Array]:
    if operator.name in _OWN:
        return _OWN[operator.name]
    if operator.python is not None:
        return _of_floats(operator.python)
    if operator.numpy:
        return getattr(np, operator.numpy)
    return lambda *arrays: _by_formula(operator, arrays)


def _by_formula(operator: ScalarOperator, arrays: Sequence[Array]) -> Array:
    assert operator.formula is not None, f"scalar operator {operator.name!r} has no meaning and no formula"
    dtype = dtype_text(arrays[0].dtype)
    return _value(operator.formula(*(Read(k, AffineMap(0, 0, ()), dtype) for k in range(len(arrays)))), arrays)


def _value(scalar: Scalar, arrays: Sequence[Array]) -> Array:
    match scalar:
        case Read():
            return arrays[scalar.operand]
        case Constant():
            return np.array(scalar.value, numpy_dtype(scalar.dtype))
        case Apply():
            return SCALARS[scalar.op](*(_value(argument, arrays) for argument in scalar.args))
        case _:
            raise TypeError(f"{scalar} in a formula")


SCALARS: Mapping[str, Callable[..., Array]] = {name: _meaning_of(found) for name, found in OPERATORS.items()}
"""What each scalar operator does with arrays."""

_UNARY: dict[str, Callable[[Array], Array]] = {
    "reciprocal": lambda x: 1 / x,
    "square": np.square,
    "logit": lambda x: np.log(x / (1 - x)),
    "relu": lambda x: np.maximum(x, 0),
    "identity": lambda x: x,
    "stop_gradient": lambda x: x,
}

_BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "barrier": lambda x, after: x,
    "mul_no_nan": lambda a, b: np.where(a == 0, a.dtype.type(0), a * b),
    "xlogy": lambda a, b: np.where(a == 0, a.dtype.type(0), a * np.log(b)),
    "log_add_exp": np.logaddexp,
    "binary_cross_entropy": lambda x, y: -(y * np.maximum(np.log(x), -100) + (1 - y) * np.maximum(np.log(1 - x), -100)),
    "floor_div": floor_divide,
}


def _declare(name: str, function: Callable[..., Array]) -> None:
    def run(op: MsOp, *arrays: Array) -> Array:
        return function(*arrays)

    meaning(name)(run)


for _operator in OPERATORS.values():
    for _tensor in _operator.tensors:
        _declare(_tensor, SCALARS[_operator.name])
for _name, _function in (*_UNARY.items(), *_BINARY.items()):
    _declare(_name, _function)


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
