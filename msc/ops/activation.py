"""Activations, as functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msc.frontend.dispatch import apply
from msc.frontend.dtypes import DTypeLike, as_dtype
from msc.frontend.errors import ApiValueError
from msc.frontend.tensor import Number, Tensor, tensor_method
from msc.ops.arithmetic import add, div, mul, sub
from msc.ops.joining import chunk
from msc.ops.operands import as_float, as_numbers, cast, flexible, is_number, only_tensor, pair
from msc.ops.selection import where
from msc.ops.shapes import axis_of
from msc.ops.unary import abs as absolute
from msc.ops.unary import log, sigmoid, sign, tanh

__all__ = [
    "celu", "clamp", "clip", "elu", "fast_gelu", "gelu", "glu", "gumbel_softmax", "hardshrink", "hardsigmoid",
    "hardswish", "hardtanh", "leaky_relu", "log_softmax", "logsigmoid", "mish", "prelu", "relu", "relu6", "selu",
    "silu", "softmax", "softmin", "softplus", "softshrink", "softsign", "swish", "tanhshrink", "threshold",
]  # fmt: skip


def _plain(name: str, operation: str, doc: str) -> Callable[[Any], Tensor]:
    def function(input: Any) -> Tensor:
        return apply(operation, as_float(only_tensor(input, name)))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return tensor_method(name)(function)


@tensor_method("relu")
def relu(input: Tensor) -> Tensor:
    """max(0, x)."""
    return apply("relu", as_numbers(only_tensor(input, "relu")))


relu6 = _plain("relu6", "relu6", "min(max(0, x), 6).")
silu = _plain("silu", "silu", "x sigmoid(x).")
mish = _plain("mish", "mish", "x tanh(log(1 + e^x)).")
softsign = _plain("softsign", "softsign", "x / (1 + |x|).")
selu = _plain("selu", "selu", "The self-normalising exponential unit (Klambauer et al., 2017).")
hardswish = _plain("hardswish", "hard_swish", "x min(max(0, x + 3), 6) / 6.")


@tensor_method("hardsigmoid")
def hardsigmoid(input: Tensor) -> Tensor:
    """min(max(0, x / 6 + 1 / 2), 1)."""
    return apply("hard_sigmoid", as_float(only_tensor(input, "hardsigmoid")))


swish = silu


def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """X times the probability that a normal number is less than x; by tanh if `approximate` is "tanh"."""
    return apply("gelu", as_float(only_tensor(input, "gelu")), approximate=approximate)


def fast_gelu(x: Tensor) -> Tensor:
    """X / (1 + exp(-1.702 |x|)) exp(0.851 (x - |x|)), which is x sigmoid(1.702 x)."""
    return mul(x, sigmoid(mul(x, 1.702)))


def leaky_relu(input: Tensor, alpha: float = 0.2) -> Tensor:
    """X where it is positive, alpha x elsewhere."""
    return apply("leaky_relu", as_float(only_tensor(input, "leaky_relu")), alpha=float(alpha))


def elu(input_x: Tensor, alpha: float = 1.0) -> Tensor:
    """X where it is positive, alpha (e^x - 1) elsewhere."""
    return apply("elu", as_float(only_tensor(input_x, "elu")), alpha=float(alpha))


def celu(x: Tensor, alpha: float = 1.0) -> Tensor:
    """max(0, x) + min(0, alpha (e^(x / alpha) - 1))."""
    return apply("celu", as_float(only_tensor(x, "celu")), alpha=float(alpha))


def prelu(input: Tensor, weight: Tensor | float) -> Tensor:
    """X where it is positive, weight x elsewhere; one weight, or one a channel (axis 1)."""
    slope = weight if isinstance(weight, Tensor) else Tensor(weight, input.dtype)
    if slope.ndim == 1 and slope.shape[0] > 1:
        slope = apply("reshape", slope, shape=(-1, *(1,) * (input.ndim - 2)))
    return apply("prelu", input, slope)


def softplus(input: Tensor, beta: float = 1, threshold: float = 20) -> Tensor:
    """log(1 + e^(beta x)) / beta; x itself where beta x is above the threshold."""
    x = as_float(only_tensor(input, "softplus"))
    scaled = x if beta == 1 else mul(x, float(beta))
    soft = apply("softplus", scaled)
    return where(scaled > threshold, x, soft if beta == 1 else div(soft, float(beta)))


def logsigmoid(x: Tensor) -> Tensor:
    """log(sigmoid(x)), without overflow."""
    return mul(apply("softplus", mul(as_float(only_tensor(x, "logsigmoid")), -1.0)), -1.0)


def hardtanh(input: Tensor, min_val: Number = -1.0, max_val: Number = 1.0) -> Tensor:
    """X clipped to an interval."""
    x = as_float(only_tensor(input, "hardtanh"))
    return apply("clip", x, min=float(min_val), max=float(max_val), open=True)


def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """X where |x| is above lambd, 0 elsewhere."""
    return where(absolute(input) > lambd, input, 0.0)


def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """X moved towards 0 by lambd, as far as 0."""
    return mul(sign(input), relu(sub(absolute(input), lambd)))


def tanhshrink(input: Tensor) -> Tensor:
    """X - tanh(x)."""
    return sub(input, tanh(input))


def threshold(input: Tensor, thr: Number, value: Number) -> Tensor:
    """X where it is above a threshold, a value elsewhere."""
    return where(input > thr, input, Tensor(value, input.dtype))


@flexible
def glu(x: Tensor, axis: int = -1) -> Tensor:
    """The first half of an axis times the sigmoid of the second."""
    size = x.shape[axis_of(x, axis, "glu")]
    if size % 2:
        raise ApiValueError("MSC0201", f"glu: axis {axis} of {x.shape} has an odd size")
    a, b = chunk(x, 2, axis)
    return mul(a, sigmoid(b))


@tensor_method("softmax")
@flexible
def softmax(input: Tensor, axis: int = -1, *, dtype: DTypeLike | None = None) -> Tensor:
    """exp(x) / sum of exp(x) along an axis."""
    x = as_float(only_tensor(input, "softmax"))
    return apply("softmax", x if dtype is None else cast(x, as_dtype(dtype)), axis=axis)


@tensor_method("log_softmax")
@flexible
def log_softmax(logits: Tensor, axis: int = -1) -> Tensor:
    """Log of softmax along an axis."""
    return apply("log_softmax", as_float(only_tensor(logits, "log_softmax")), axis=axis)


@flexible
def softmin(x: Tensor, axis: int = -1) -> Tensor:
    """Softmax of -x along an axis."""
    return softmax(mul(x, -1.0), axis)


@tensor_method("clamp", "clip")
def clamp(input: Tensor, min: Number | Tensor | None = None, max: Number | Tensor | None = None) -> Tensor:
    """x, but at least min and at most max; either may be a tensor or absent."""
    x = as_numbers(only_tensor(input, "clamp"))
    if min is None and max is None:
        raise ApiValueError("MSC0203", "clamp: neither min nor max is given")
    if (min is None or is_number(min)) and (max is None or is_number(max)) and x.dtype.is_float:
        return apply("clip", x, min=None if min is None else float(min), max=None if max is None else float(max))
    x = x if min is None else apply("maximum", *pair("clamp", x, min), to_first=True)
    return x if max is None else apply("minimum", *pair("clamp", x, max), to_first=True)


clip = clamp


@flexible
def gumbel_softmax(logits: Tensor, tau: float = 1.0, hard: bool = False, axis: int = -1) -> Tensor:
    """Softmax of the logits with Gumbel noise, over tau; the largest as 1 and all others as 0 if `hard`."""
    from msc.ops.creation import one_hot
    from msc.ops.random import uniform_like
    from msc.ops.reductions import argmax

    noise = mul(log(mul(log(uniform_like(logits)), -1.0)), -1.0)
    soft = softmax(div(add(logits, noise), float(tau)), axis)
    if not hard:
        return soft
    return cast(one_hot(argmax(soft, axis), soft.shape[axis_of(soft, axis, "gumbel_softmax")], axis=axis), soft.dtype)
