"""Composite activations, by the formulas of MindSpore and ONNX."""

from __future__ import annotations

import math

import numpy as np

from msc.dialects.arrays import Array
from msc.dialects.ms.base import MsOp
from msc.interp.meanings.elementwise import SCALARS, sigmoid, softplus
from msc.interp.meanings.reductions import largest
from msc.interp.registry import meaning

SELU_ALPHA = 1.6732632423543772
SELU_SCALE = 1.0507009873554805


@meaning("gelu")
def _gelu(op: MsOp, x: Array) -> Array:
    if op.word("approximate") == "tanh":
        return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    return 0.5 * x * (1 + SCALARS["erf"](x * math.sqrt(0.5)))


@meaning("silu")
def _silu(op: MsOp, x: Array) -> Array:
    return x * sigmoid(x)


@meaning("relu6")
def _relu6(op: MsOp, x: Array) -> Array:
    return np.minimum(np.maximum(x, 0), 6)


@meaning("leaky_relu")
def _leaky_relu(op: MsOp, x: Array) -> Array:
    return np.where(x >= 0, x, op.real("alpha") * x)


@meaning("elu")
def _elu(op: MsOp, x: Array) -> Array:
    return np.where(x > 0, x, op.real("alpha") * np.expm1(np.minimum(x, 0)))


@meaning("selu")
def _selu(op: MsOp, x: Array) -> Array:
    return SELU_SCALE * np.where(x > 0, x, SELU_ALPHA * np.expm1(np.minimum(x, 0)))


@meaning("celu")
def _celu(op: MsOp, x: Array) -> Array:
    alpha = op.real("alpha")
    return np.maximum(x, 0) + np.minimum(alpha * np.expm1(np.minimum(x, 0) / alpha), 0)


@meaning("mish")
def _mish(op: MsOp, x: Array) -> Array:
    return x * np.tanh(softplus(x))


@meaning("softsign")
def _softsign(op: MsOp, x: Array) -> Array:
    return x / (1 + np.abs(x))


@meaning("hard_sigmoid")
def _hard_sigmoid(op: MsOp, x: Array) -> Array:
    return np.minimum(np.maximum(op.real("alpha") * x + op.real("beta"), 0), 1)


@meaning("hard_swish")
def _hard_swish(op: MsOp, x: Array) -> Array:
    return x * np.minimum(np.maximum(x + 3, 0), 6) / 6


@meaning("prelu")
def _prelu(op: MsOp, x: Array, slope: Array) -> Array:
    """A one-dimensional slope runs along the channels (axis 1), as MindSpore has it."""
    if slope.ndim == 1 and x.ndim > 1:
        slope = slope.reshape((1, -1) + (1,) * (x.ndim - 2))
    return np.where(x >= 0, x, slope * x)


@meaning("clip")
def _clip(op: MsOp, x: Array) -> Array:
    low, high = op.plain("min"), op.plain("max")
    if isinstance(low, int | float):
        x = np.maximum(x, x.dtype.type(low))
    return np.minimum(x, x.dtype.type(high)) if isinstance(high, int | float) else x


@meaning("softmax")
def _softmax(op: MsOp, x: Array) -> Array:
    axis = op.int_("axis")
    powers = np.exp(x - largest(x, (axis,)))
    return powers / powers.sum(axis=axis, keepdims=True)


@meaning("log_softmax")
def _log_softmax(op: MsOp, x: Array) -> Array:
    axis = op.int_("axis")
    shifted = x - largest(x, (axis,))
    return shifted - np.log(np.exp(shifted).sum(axis=axis, keepdims=True))
