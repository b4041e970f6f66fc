"""Gradients of normalisations over rows, in closed form: two sums a row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xdsl.ir import SSAValue

from msc.dialects import ms
from msc.dialects.ms.normalisation import NormalisationOp
from msc.dialects.ms.shapes import Shape, normal_axis
from msc.graph.autodiff.emitting import GradientEmitter
from msc.graph.autodiff.registry import Contributions, gradient


@dataclass(frozen=True)
class _Rows:
    """A tensor as it is normalised: a shape that splits it into rows along `axes`, and that of scale and offset."""

    shape: Shape
    axes: Sequence[int]
    scale: Shape


@gradient(ms.LayerNormOp)
def _layer_norm(op: ms.LayerNormOp, emit: GradientEmitter, g: SSAValue) -> Contributions:
    return _normalised(op, _last_axes(op), emit, g, centred=True)


@gradient(ms.RmsNormOp)
def _rms_norm(op: ms.RmsNormOp, emit: GradientEmitter, g: SSAValue) -> Contributions:
    return _normalised(op, _last_axes(op), emit, g, centred=False)


def _last_axes(op: ms.LayerNormOp | ms.RmsNormOp) -> _Rows:
    shape = op.shape(0)
    first = normal_axis(op.name, op.int_("begin_norm_axis"), len(shape))
    return _Rows(shape, range(first, len(shape)), op.shape(1))


@gradient(ms.GroupNormOp)
def _group_norm(op: ms.GroupNormOp, emit: GradientEmitter, g: SSAValue) -> Contributions:
    return _normalised(op, _groups(op, op.int_("num_groups")), emit, g, centred=True)


@gradient(ms.InstanceNormOp)
def _instance_norm(op: ms.InstanceNormOp, emit: GradientEmitter, g: SSAValue) -> Contributions:
    return _normalised(op, _groups(op, op.shape(0)[1]), emit, g, centred=True)


def _groups(op: NormalisationOp, groups: int) -> _Rows:
    n, channels, *spatial = op.shape(0)
    return _Rows((n, groups, channels // groups, prod(spatial)), (2, 3), (groups, channels // groups, 1))


def _normalised(op: NormalisationOp, rows: _Rows, emit: GradientEmitter, g: SSAValue, centred: bool) -> Contributions:
    """With h the normalised rows and k = g scale: r (k - mean of k - h mean of k h), the mean of k if centred."""
    axes = list(rows.axes)
    g, x, scale = emit.reshape(g, rows.shape), emit.reshape(op.operands[0], rows.shape), op.operands[1]
    if centred:
        x = emit(ms.SubOp, x, emit(ms.ReduceMeanOp, x, axis=axes, keep_dims=True))
    square = emit(ms.ReduceMeanOp, emit(ms.SquareOp, x), axis=axes, keep_dims=True)
    r = emit(ms.RsqrtOp, emit(ms.AddOp, square, op.real("epsilon")))
    h = emit(ms.MulOp, x, r)
    found: list[SSAValue | None] = [None] * len(op.operands)
    if emit.wants(0):
        k = emit(ms.MulOp, g, emit.reshape(scale, rows.scale))
        part = emit(ms.MulOp, h, emit(ms.ReduceMeanOp, emit(ms.MulOp, k, h), axis=axes, keep_dims=True))
        if centred:
            part = emit(ms.AddOp, part, emit(ms.ReduceMeanOp, k, axis=axes, keep_dims=True))
        found[0] = emit.reshape(emit(ms.MulOp, r, emit(ms.SubOp, k, part)), op.shape(0))
    if emit.wants(1):
        found[1] = _summed(op, rows, emit(ms.MulOp, g, h), emit)
    if emit.wants(2):
        found[2] = _summed(op, rows, g, emit)
    return found


def _summed(op: NormalisationOp, rows: _Rows, value: SSAValue, emit: GradientEmitter) -> SSAValue:
    """A sum over all rows, for scale or offset."""
    if rows.scale == op.shape(1):
        return emit.sum_to(value, op.shape(1))
    return emit.reshape(emit(ms.ReduceSumOp, value, axis=[0, 3]), op.shape(1))
