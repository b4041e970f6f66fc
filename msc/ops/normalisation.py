"""Normalisation, dropout."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from math import prod

import numpy as np

from msc.frontend import dtypes, settings
from msc.frontend.dispatch import apply
from msc.frontend.errors import ApiValueError
from msc.frontend.parameter import Parameter
from msc.frontend.precision import ComputePrecision, computing_in, converted
from msc.frontend.tensor import Tensor
from msc.ops.activation import clamp
from msc.ops.arithmetic import add, div, mul
from msc.ops.arithmetic import pow as power
from msc.ops.operands import as_float, cast, flexible, only_tensor
from msc.ops.random import keep_mask
from msc.ops.reductions import Axes, axes_of, mean, norm
from msc.ops.shapes import Sizes, reshape, sizes_of
from msc.ops.windows import pooling

__all__ = [
    "batch_norm", "dropout", "dropout1d", "dropout2d", "dropout3d", "group_norm", "l2_normalize", "layer_norm",
    "lrn", "normalize", "rms_norm",
]  # fmt: skip


def layer_norm(
    input: Tensor,
    normalized_shape: Sizes,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """(x - mean) / sqrt(variance + eps) * weight + bias over the last axes, which have `normalized_shape`."""
    x, shape = as_float(only_tensor(input, "layer_norm")), sizes_of(normalized_shape)
    if x.shape[-len(shape) :] != shape:
        raise ApiValueError("MSC0201", f"layer_norm: x of {x.shape} does not end with the normalised shape {shape}")
    gamma = _ones(shape, x) if weight is None else weight
    return apply("layer_norm", x, gamma, bias, begin_norm_axis=x.ndim - len(shape), epsilon=float(eps))


def _ones(shape: Sequence[int], like: Tensor) -> Tensor:
    return Tensor.of(np.ones(tuple(shape), like.dtype.numpy))


def _zeros(shape: Sequence[int], like: Tensor) -> Tensor:
    return Tensor.of(np.zeros(tuple(shape), like.dtype.numpy))


def rms_norm(x: Tensor, gamma: Tensor, epsilon: float = 1e-6) -> tuple[Tensor, Tensor]:
    """X / sqrt(mean of x squared + epsilon) * gamma over the axes of gamma, and 1 / sqrt(...)."""
    y = apply("rms_norm", x, gamma, begin_norm_axis=x.ndim - gamma.ndim, epsilon=float(epsilon))
    squares = mean(apply("square", x), tuple(builtins.range(x.ndim - gamma.ndim, x.ndim)), True)
    return y, apply("rsqrt", squares + float(epsilon))


def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """Normalisation of x `[n, c, ...]` over the spatial axes and groups of channels."""
    x = as_float(only_tensor(input, "group_norm"))
    shape = (x.shape[1],)
    gamma, beta = _ones(shape, x) if weight is None else weight, _zeros(shape, x) if bias is None else bias
    return apply("group_norm", x, gamma, beta, num_groups=num_groups, epsilon=float(eps))


_WIDE = ComputePrecision(dtypes.float32)
"""What statistics are computed in, whatever the layers around compute in."""


def batch_statistics(x: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and variance (divisor N) of each channel of x `[n, c, ...]`, of narrow floats in Float32."""
    around = ComputePrecision.current
    narrow = None if around is None else around.type_for("batch_norm")
    axes = (0, *builtins.range(2, x.ndim))
    with computing_in(_WIDE):
        given = x if narrow is None else converted(x, narrow)
        average = apply("reduce_mean", given, axis=axes, keep_dims=True)
        distance = apply("sub", given, average)
        spread = apply("reduce_mean", apply("square", distance), axis=axes, keep_dims=False)
        return reshape(average, (x.shape[1],)), spread


def move_statistics(
    average: Tensor, variance: Tensor, x: Tensor, batch_average: Tensor, batch_variance: Tensor, part: float
) -> None:
    """Let moving statistics come nearer, by a part of the way, to those of a batch x with divisor N.

    Only parameters move. The variance moves towards that of divisor N - 1, which of a single value is NaN.
    """
    n = prod((x.shape[0], *x.shape[2:]))
    if n == 1:
        settings.tell_once(
            ("batch norm", "one value"),
            "MSC0894",
            f"a batch norm in training is given {tuple(x.shape)}, one value a channel: moving_variance becomes NaN",
            help="leave a last batch of one out, as by batch(..., drop_remainder=True), or call set_train(False)",
        )
    with computing_in(_WIDE):
        unbiased = div(mul(batch_variance, float(n)), float(n - 1))
        for moving, new in ((average, batch_average), (variance, unbiased)):
            if isinstance(moving, Parameter):
                moving.set_data(add(mul(moving, 1 - part), mul(new, part)))


def batch_norm(
    input_x: Tensor,
    running_mean: Tensor,
    running_var: Tensor,
    weight: Tensor,
    bias: Tensor,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """(x - mean) / sqrt(variance + eps) * weight + bias a channel, of the batch itself if `training`.

    Then running ones that are Parameters become (1 - momentum) * running + momentum * batch.
    """
    x = as_float(only_tensor(input_x, "batch_norm"))
    average, variance = batch_statistics(x) if training else (running_mean, running_var)
    if training:
        move_statistics(running_mean, running_var, x, average, variance, momentum)
        average, variance = cast(average, running_mean.dtype), cast(variance, running_var.dtype)
    return apply("batch_norm", x, weight, bias, average, variance, epsilon=float(eps))


def l2_normalize(x: Tensor, axis: int | Sequence[int] = 0, epsilon: float = 1e-4) -> Tensor:
    """X / sqrt(max(sum of x squared, epsilon)) along axes."""
    return apply("l2_normalize", x, axis=axes_of(x, axis, "l2_normalize"), epsilon=float(epsilon))


@flexible
def normalize(input: Tensor, p: float = 2.0, axis: Axes = 1, eps: float = 1e-12) -> Tensor:
    """X over its norm of order p along an axis, which counts as eps at least."""
    return div(input, clamp(norm(input, p, axis, True), float(eps)))


def lrn(
    x: Tensor, depth_radius: int = 5, bias: float = 1.0, alpha: float = 1.0, beta: float = 0.5,
    norm_region: str = "ACROSS_CHANNELS",
) -> Tensor:  # fmt: skip
    """Local response normalisation: x / (bias + alpha sum of squares of near channels)^beta."""
    if norm_region != "ACROSS_CHANNELS":
        raise ApiValueError("MSC0203", f"lrn: norm_region is {norm_region!r}, not 'ACROSS_CHANNELS'")
    n, c, h, w = x.shape
    squares = reshape(apply("square", x), (n, 1, c, h * w))
    size = 2 * depth_radius + 1
    near = pooling("avg", squares, (size, 1), 1, "pad", (depth_radius, depth_radius, 0, 0), 2, count_include_pad=True)
    return div(x, power(mul(reshape(near, x.shape), alpha * size) + bias, beta))


def dropout(input: Tensor, p: float = 0.5, training: bool = True, seed: int | None = None) -> Tensor:
    """Elements set to 0 with probability p, the others scaled by 1 / (1 - p); nothing unless `training`."""
    return dropped(input, p, training, input.shape if training else (), seed)


def dropped(x: Tensor, p: float, training: bool, shape: Sequence[int], seed: int | None = None) -> Tensor:
    """Dropout with one decision for each element of `shape`, which broadcasts."""
    if not 0 <= p <= 1:
        raise ApiValueError("MSC0203", f"dropout: the probability p is {p}; it must be between 0 and 1")
    if not training or p == 0:
        return x
    if p == 1:
        return mul(x, 0.0)
    return mul(mul(x, keep_mask(x, p, shape, seed)), 1 / (1 - p))


def dropout1d(input: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """Dropout of whole channels of `[n, c, w]`."""
    return dropped(input, p, training, (*input.shape[:2], *(1,) * (input.ndim - 2)))


dropout2d = dropout3d = dropout1d
