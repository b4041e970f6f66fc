"""Normalisations: (x - mean) / sqrt(variance + epsilon), over different axes, then a learned scale and offset."""

from __future__ import annotations

import numpy as np

from msc.dialects.arrays import Array
from msc.dialects.ms.base import MsOp
from msc.interp.meanings.reductions import mean
from msc.interp.registry import meaning


@meaning("batch_norm")
def _batch_norm(op: MsOp, x: Array, scale: Array, offset: Array, centre: Array, variance: Array) -> Array:
    """Inference: statistics are given, one number a channel (axis 1)."""
    scale, offset, centre, variance = (_along_channels(v, x.ndim) for v in (scale, offset, centre, variance))
    return (x - centre) / np.sqrt(variance + op.real("epsilon")) * scale + offset


@meaning("layer_norm")
def _layer_norm(op: MsOp, x: Array, gamma: Array | None = None, beta: Array | None = None) -> Array:
    first = op.int_("begin_norm_axis") % x.ndim
    return _affine(normalised(x, tuple(range(first, x.ndim)), op.real("epsilon")), gamma, beta)


@meaning("group_norm")
def _group_norm(op: MsOp, x: Array, gamma: Array | None = None, beta: Array | None = None) -> Array:
    groups = op.int_("num_groups")
    grouped = x.reshape(x.shape[0], groups, x.shape[1] // groups, *x.shape[2:])
    y = normalised(grouped, tuple(range(2, grouped.ndim)), op.real("epsilon")).reshape(x.shape)
    return _affine_channels(y, gamma, beta)


@meaning("instance_norm")
def _instance_norm(op: MsOp, x: Array, gamma: Array | None = None, beta: Array | None = None) -> Array:
    return _affine_channels(normalised(x, tuple(range(2, x.ndim)), op.real("epsilon")), gamma, beta)


@meaning("rms_norm")
def _rms_norm(op: MsOp, x: Array, gamma: Array | None = None) -> Array:
    """X / sqrt(mean(x^2) + epsilon) over the axes that gamma has: the last one, if there is none."""
    axes = tuple(range(x.ndim - (1 if gamma is None else gamma.ndim), x.ndim))
    return _affine(x / np.sqrt(mean(x * x, axes, keepdims=True) + op.real("epsilon")), gamma, None)


@meaning("l2_normalize")
def _l2_normalize(op: MsOp, x: Array) -> Array:
    """X / sqrt(max(sum(x^2), epsilon)) along `axis` (MindSpore L2Normalize)."""
    return x / np.sqrt(np.maximum(np.sum(x * x, axis=op.ints("axis"), keepdims=True), op.real("epsilon")))


def normalised(x: Array, axes: tuple[int, ...], epsilon: float) -> Array:
    """Zero mean and unit (biased) variance over `axes`; the mean of residuals corrects the first."""
    centred = x - mean(x, axes, keepdims=True)
    centred = centred - mean(centred, axes, keepdims=True)
    return centred / np.sqrt(mean(centred * centred, axes, keepdims=True) + epsilon)


def _affine(y: Array, gamma: Array | None, beta: Array | None) -> Array:
    scaled = y if gamma is None else y * gamma
    return scaled if beta is None else scaled + beta


def _affine_channels(y: Array, gamma: Array | None, beta: Array | None) -> Array:
    per_channel = [None if v is None else _along_channels(v, y.ndim) for v in (gamma, beta)]
    return _affine(y, *per_channel)


def _along_channels(values: Array, rank: int) -> Array:
    return values.reshape((-1,) + (1,) * (rank - 2))
