"""Element-wise functions that other functions compose."""

# Values of user programs and lambdas of operators are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownLambdaType=false, reportUnnecessaryComparison=false, reportUnnecessaryIsInstance=false

from __future__ import annotations

import math
from typing import Any

import numpy as np

from msc.frontend import dtypes
from msc.frontend.tensor import Tensor, tensor_method
from msc.ops import (
    activation,
    arithmetic,
    comparison,
    compositions,
    creation,
    joining,
    random,
    selection,
    shapes,
    unary,
)
from msc.ops.operands import as_float, cast, pair
from msc.ops.outside import on_arrays

__all__ = [
    "approximate_equal",
    "arctan2",
    "copysign",
    "eps",
    "float_power",
    "floordiv",
    "gcd",
    "imag",
    "is_complex",
    "is_nonzero",
    "isneginf",
    "isposinf",
    "isreal",
    "lcm",
    "ldexp",
    "logaddexp2",
    "nextafter",
    "population_count",
    "positive",
    "real",
    "rotary_position_embedding",
    "rrelu",
    "sgn",
    "signbit",
    "swiglu",
    "tensor_expm1",
    "tensor_muls",
    "xdivy",
]


def real(input: Tensor) -> Tensor:
    """The real part: the tensor."""
    return input


def imag(input: Tensor) -> Tensor:
    """The imaginary part: 0."""
    return creation.zeros_like(input)


def is_complex(input: Tensor) -> bool:
    """False: elements are real."""
    del input
    return False


def isreal(input: Tensor) -> Tensor:
    """True everywhere."""
    return creation.full_like(input, True, dtype=dtypes.bool_)


def is_nonzero(input: Tensor) -> bool:
    """Whether the only element is not 0."""
    return bool(input)


def isposinf(input: Tensor) -> Tensor:
    """Whether elements are infinity."""
    return comparison.equal(input, float("inf"))


def isneginf(input: Tensor) -> Tensor:
    """Whether elements are minus infinity."""
    return comparison.equal(input, float("-inf"))


def positive(input: Tensor) -> Tensor:
    """The tensor itself."""
    return input


def sgn(input: Tensor) -> Tensor:
    """The sign."""
    return unary.sign(input)


def signbit(x: Tensor) -> Tensor:
    """Whether elements are below 0."""
    return x < 0


def is_negative(x: Tensor) -> Tensor:
    """Whether elements are below 0, or minus 0."""
    if not x.dtype.is_float:
        return x < 0
    return comparison.less(arithmetic.atan2(x, creation.full_like(x, -1.0)), 0.0)


def copysign(x: Any, other: Any) -> Tensor:
    """The size of one with the sign of the other."""
    a, b = map(as_float, pair("copysign", x, other))
    size = unary.abs(a)
    return selection.where(is_negative(b), unary.neg(size), size)


def ldexp(x: Any, other: Any) -> Tensor:
    """X times two to a power."""
    return arithmetic.mul(x, arithmetic.pow(2.0, other))


def float_power(input: Any, exponent: Any) -> Tensor:
    """The power, in Float64."""
    a, b = pair("float_power", input, exponent)
    return arithmetic.pow(cast(a, dtypes.float64), cast(b, dtypes.float64))


def logaddexp2(input: Any, other: Any) -> Tensor:
    """log2(2^a + 2^b)."""
    a, b = map(as_float, pair("logaddexp2", input, other))
    return arithmetic.div(
        compositions.logaddexp(arithmetic.mul(a, math.log(2)), arithmetic.mul(b, math.log(2))), math.log(2)
    )


def xdivy(x: Any, y: Any) -> Tensor:
    """X / y, and 0 where x is 0."""
    a, b = map(as_float, pair("xdivy", x, y))
    return selection.where(
        comparison.equal(a, 0), 0.0, arithmetic.div(a, selection.where(comparison.equal(a, 0), 1.0, b))
    )


def mul_no_nan_values(x: Any, y: Any) -> Tensor:
    """X * y, and 0 where y is 0."""
    return selection.where(comparison.equal(y, 0), 0, arithmetic.mul(x, y))


def approximate_equal(x: Tensor, y: Tensor, tolerance: float = 1e-5) -> Tensor:
    """Whether elements differ by less than the tolerance."""
    return comparison.less(unary.abs(arithmetic.sub(x, y)), tolerance)


def gcd(input: Tensor, other: Tensor) -> Tensor:
    """The greatest common divisor of integers."""
    return on_arrays("gcd", np.gcd, *pair("gcd", input, other))


def lcm(input: Tensor, other: Tensor) -> Tensor:
    """The least common multiple of integers."""
    return on_arrays("lcm", np.lcm, *pair("lcm", input, other))


def nextafter(input: Tensor, other: Tensor) -> Tensor:
    """The next number after one on the way to the other."""
    return on_arrays("nextafter", np.nextafter, *pair("nextafter", input, other))


def population_count(input_x: Tensor) -> Tensor:
    """How many bits are 1 (UInt8)."""

    def count(x: Any) -> Any:
        return np.unpackbits(x[..., None].view(np.uint8), axis=-1).sum(-1, dtype=np.uint8)

    return on_arrays("population_count", count, input_x)


def eps(x: Tensor) -> Tensor:
    """The distance from 1 to the next number of the element type, in the shape of the tensor."""
    finfo: Any = np.finfo
    return creation.full_like(x, float(finfo(x.dtype.numpy).eps))


def rrelu(input: Tensor, lower: float = 1 / 8, upper: float = 1 / 3) -> Tensor:
    """X, below 0 times a random slope between two."""
    slope = arithmetic.add(arithmetic.mul(random.rand_like(input), upper - lower), lower)
    return selection.where(input < 0, arithmetic.mul(input, slope), input)


def swiglu(input: Tensor, dim: int = -1) -> Tensor:
    """silu(a) * b for the halves of an axis."""
    a, b = joining.chunk(input, 2, dim)
    return arithmetic.mul(activation.silu(a), b)


def rotary_position_embedding(x: Tensor, cos: Tensor, sin: Tensor, mode: int = 0) -> Tensor:
    """X cos + turned x sin; of halves (mode 0) or of neighbours (mode 1) the second is turned to the front, negated."""
    if mode == 0:
        a, b = joining.chunk(x, 2, -1)
        turned = joining.concat([unary.neg(b), a], -1)
    else:
        pairs = shapes.reshape(x, (*x.shape[:-1], x.shape[-1] // 2, 2))
        a, b = joining.unbind(pairs, -1)
        turned = shapes.reshape(joining.stack([unary.neg(b), a], -1), x.shape)
    return arithmetic.add(arithmetic.mul(x, cos), arithmetic.mul(turned, sin))


arctan2 = arithmetic.atan2


floordiv, tensor_expm1, tensor_muls = arithmetic.floor_divide, unary.expm1, arithmetic.mul


for _function in (
    approximate_equal,
    copysign,
    float_power,
    gcd,
    imag,
    is_complex,
    isneginf,
    isposinf,
    isreal,
    lcm,
    ldexp,
    logaddexp2,
    nextafter,
    positive,
    sgn,
    signbit,
    xdivy,
):
    tensor_method(_function.__name__)(_function)


tensor_method("arctan2")(arctan2)
