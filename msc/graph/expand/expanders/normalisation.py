"""Normalisations in reductions over rows and element-wise operations: each is one kernel after clustering.

The division by the square root becomes one reciprocal root a row and a multiplication an element, which differs from
the direct form by about two units in the last place.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from xdsl.ir import SSAValue

from msc.dialects.ms.arithmetic import AddOp, DivOp, MaximumOp, MulOp, SubOp
from msc.dialects.ms.normalisation import (
    BatchNormOp,
    GroupNormOp,
    InstanceNormOp,
    L2NormalizeOp,
    LayerNormOp,
    RmsNormOp,
)
from msc.dialects.ms.reductions import ReduceSumOp
from msc.dialects.ms.unary import RsqrtOp, SqrtOp, SquareOp
from msc.graph.emitter import Emitter
from msc.graph.expand.expanders.registry import expander


def row_mean(x: SSAValue, axes: Sequence[int], emit: Emitter) -> SSAValue:
    """The mean over `axes`, which stay with size 1."""
    return emit(DivOp, _row_sum(x, axes, emit), _row_size(x, axes, emit))


def _row_sum(x: SSAValue, axes: Sequence[int], emit: Emitter) -> SSAValue:
    return emit(ReduceSumOp, x, axis=list(axes), keep_dims=True)


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
    centred = emit(SubOp, x, row_mean(x, axes, emit))
    total, squares = _row_sum(centred, axes, emit), _row_sum(emit(SquareOp, centred), axes, emit)
    spread = emit(SubOp, squares, emit(DivOp, emit(SquareOp, total), n))
    variance = emit(DivOp, emit(MaximumOp, spread, 0.0), n)
    root = emit(RsqrtOp, emit(AddOp, variance, epsilon))
    return emit(MulOp, emit(SubOp, centred, emit(DivOp, total, n)), root)


def _tail_axes(op: LayerNormOp | RmsNormOp) -> tuple[int, ...]:
    rank = len(op.shape(0))
    return tuple(range(op.int_("begin_norm_axis") % rank, rank))


@expander(LayerNormOp)
def _layer_norm(op: LayerNormOp, emit: Emitter) -> SSAValue:
    scaled = emit(MulOp, _normalised(op.x, _tail_axes(op), op.real("epsilon"), emit), op.gamma)
    return scaled if op.beta is None else emit(AddOp, scaled, op.beta)


@expander(RmsNormOp)
def _rms_norm(op: RmsNormOp, emit: Emitter) -> SSAValue:
    mean = row_mean(emit(SquareOp, op.x), _tail_axes(op), emit)
    root = emit(RsqrtOp, emit(AddOp, mean, op.real("epsilon")))
    return emit(MulOp, emit(MulOp, op.x, root), op.gamma)


@expander(GroupNormOp)
def _group_norm(op: GroupNormOp, emit: Emitter) -> SSAValue:
    """In the shape `[n, groups, c / groups, pixels]`, whose last two axes are the normalised ones."""
    shape, groups = emit.shape(op.x), op.int_("num_groups")
    n, channels, *spatial = shape
    grouped = emit.reshape(op.x, (n, groups, channels // groups, math.prod(spatial)))
    y = _normalised(grouped, (2, 3), op.real("epsilon"), emit)
    scales = (groups, channels // groups, 1)
    y = emit(MulOp, y, emit.reshape(op.gamma, scales))
    return emit.reshape(emit(AddOp, y, emit.reshape(op.beta, scales)), shape)


@expander(InstanceNormOp)
def _instance_norm(op: InstanceNormOp, emit: Emitter) -> SSAValue:
    rank = len(op.shape(0))
    y = _normalised(op.x, range(2, rank), op.real("epsilon"), emit)
    y = emit(MulOp, y, emit.along_channels(op.gamma, rank))
    return emit(AddOp, y, emit.along_channels(op.beta, rank))


@expander(L2NormalizeOp)
def _l2_normalize(op: L2NormalizeOp, emit: Emitter) -> SSAValue:
    total = emit(ReduceSumOp, emit(SquareOp, op.x), axis=list(op.ints("axis")), keep_dims=True)
    return emit(MulOp, op.x, emit(RsqrtOp, emit(MaximumOp, total, op.real("epsilon"))))


def scale_and_shift(op: BatchNormOp, emit: Emitter) -> tuple[SSAValue, SSAValue]:
    """Batch normalisation as x * scale + shift: scale / sqrt(variance + epsilon), and offset - mean * that."""
    deviation = emit(SqrtOp, emit(AddOp, op.variance, op.real("epsilon")))
    scale = emit(DivOp, op.scale, deviation)
    return scale, emit(SubOp, op.offset, emit(MulOp, op.mean, scale))


@expander(BatchNormOp)
def _batch_norm(op: BatchNormOp, emit: Emitter) -> SSAValue:
    rank = len(op.shape(0))
    scale, shift = (emit.along_channels(v, rank) for v in scale_and_shift(op, emit))
    return emit(AddOp, emit(MulOp, op.x, scale), shift)
