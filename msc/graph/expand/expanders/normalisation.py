"""Normalisations in reductions over rows and element-wise operations: each is one kernel after clustering.

The division by the square root becomes one reciprocal root a row and a multiplication an element, which differs from
the direct form by about two units in the last place.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from xdsl.ir import SSAValue

from msc.dialects import ms
from msc.graph.emitter import Emitter
from msc.graph.expand.expanders.registry import expander


def row_mean(x: SSAValue, axes: Sequence[int], emit: Emitter) -> SSAValue:
    """The mean over `axes`, which stay with size 1."""
    return emit(ms.DivOp, _row_sum(x, axes, emit), _row_size(x, axes, emit))


def _row_sum(x: SSAValue, axes: Sequence[int], emit: Emitter) -> SSAValue:
    return emit(ms.ReduceSumOp, x, axis=list(axes), keep_dims=True)


def _row_size(x: SSAValue, axes: Sequence[int], emit: Emitter) -> float:
    shape = emit.shape(x)
    return float(math.prod(shape[axis] for axis in axes))


def _normalised(x: SSAValue, axes: Sequence[int], epsilon: float, emit: Emitter) -> SSAValue:
    """Centred twice: the first mean is off by its rounding, of the size of x; the mean of the residuals corrects it.

    The residuals and their squares are added up in one pass: the corrected two-pass algorithm (Chan, Golub, LeVeque:
    Algorithms for computing the sample variance). Rounding could leave a variance below 0. Operations on elements are
    next to each other, so that they share a loop.
    """
    n = _row_size(x, axes, emit)
    centred = emit(ms.SubOp, x, row_mean(x, axes, emit))
    total, squares = _row_sum(centred, axes, emit), _row_sum(emit(ms.SquareOp, centred), axes, emit)
    spread = emit(ms.SubOp, squares, emit(ms.DivOp, emit(ms.SquareOp, total), n))
    variance = emit(ms.DivOp, emit(ms.MaximumOp, spread, 0.0), n)
    root = emit(ms.RsqrtOp, emit(ms.AddOp, variance, epsilon))
    return emit(ms.MulOp, emit(ms.SubOp, centred, emit(ms.DivOp, total, n)), root)


def _tail_axes(op: ms.LayerNormOp | ms.RmsNormOp) -> tuple[int, ...]:
    rank = len(op.shape(0))
    return tuple(range(op.int_("begin_norm_axis") % rank, rank))


@expander(ms.LayerNormOp)
def _layer_norm(op: ms.LayerNormOp, emit: Emitter) -> SSAValue:
    scaled = emit(ms.MulOp, _normalised(op.x, _tail_axes(op), op.real("epsilon"), emit), op.gamma)
    return scaled if op.beta is None else emit(ms.AddOp, scaled, op.beta)


@expander(ms.RmsNormOp)
def _rms_norm(op: ms.RmsNormOp, emit: Emitter) -> SSAValue:
    mean = row_mean(emit(ms.SquareOp, op.x), _tail_axes(op), emit)
    root = emit(ms.RsqrtOp, emit(ms.AddOp, mean, op.real("epsilon")))
    return emit(ms.MulOp, emit(ms.MulOp, op.x, root), op.gamma)


@expander(ms.GroupNormOp)
def _group_norm(op: ms.GroupNormOp, emit: Emitter) -> SSAValue:
    """In the shape `[n, groups, c / groups, pixels]`, whose last two axes are the normalised ones."""
    shape, groups = emit.shape(op.x), op.int_("num_groups")
    n, channels, *spatial = shape
    grouped = emit.reshape(op.x, (n, groups, channels // groups, math.prod(spatial)))
    y = _normalised(grouped, (2, 3), op.real("epsilon"), emit)
    scales = (groups, channels // groups, 1)
    y = emit(ms.MulOp, y, emit.reshape(op.gamma, scales))
    return emit.reshape(emit(ms.AddOp, y, emit.reshape(op.beta, scales)), shape)


@expander(ms.InstanceNormOp)
def _instance_norm(op: ms.InstanceNormOp, emit: Emitter) -> SSAValue:
    rank = len(op.shape(0))
    y = _normalised(op.x, range(2, rank), op.real("epsilon"), emit)
    y = emit(ms.MulOp, y, emit.along_channels(op.gamma, rank))
    return emit(ms.AddOp, y, emit.along_channels(op.beta, rank))


@expander(ms.L2NormalizeOp)
def _l2_normalize(op: ms.L2NormalizeOp, emit: Emitter) -> SSAValue:
    total = emit(ms.ReduceSumOp, emit(ms.SquareOp, op.x), axis=list(op.ints("axis")), keep_dims=True)
    return emit(ms.MulOp, op.x, emit(ms.RsqrtOp, emit(ms.MaximumOp, total, op.real("epsilon"))))


def scale_and_shift(op: ms.BatchNormOp, emit: Emitter) -> tuple[SSAValue, SSAValue]:
    """Batch normalisation as x * scale + shift: scale / sqrt(variance + epsilon), and offset - mean * that."""
    deviation = emit(ms.SqrtOp, emit(ms.AddOp, op.variance, op.real("epsilon")))
    scale = emit(ms.DivOp, op.scale, deviation)
    return scale, emit(ms.SubOp, op.offset, emit(ms.MulOp, op.mean, scale))


@expander(ms.BatchNormOp)
def _batch_norm(op: ms.BatchNormOp, emit: Emitter) -> SSAValue:
    rank = len(op.shape(0))
    scale, shift = (emit.along_channels(v, rank) for v in scale_and_shift(op, emit))
    return emit(ms.AddOp, emit(ms.MulOp, op.x, scale), shift)
