"""Normalisations."""

from __future__ import annotations

import math

from msc.dialects import ms
from msc.dialects.arrays import numpy_dtype
from msc.importers.onnx.node import Node
from msc.importers.onnx.reading.tensors import dtype_of
from msc.importers.onnx.registry import importer
from msc.importers.onnx.values import OnnxValue, Slot


@importer("BatchNormalization")
def _batch_norm(node: Node) -> list[Slot]:
    """Inference; with training_mode the batch's own mean and variance, and the running ones updated."""
    x, scale, offset, mean, variance = (node[i] for i in range(5))
    epsilon = node.real("epsilon", 1e-5)
    if not node.flag("training_mode"):
        return [_batch_normalised(node, x, scale, offset, mean, variance, epsilon)]
    axes, keep = [a for a in range(x.rank) if a != 1], node.real("momentum", 0.9)
    now_mean = node(ms.ReduceMeanOp, x, axis=axes)
    centred = node(ms.SubOp, x, node.reshape(now_mean, _channels(now_mean, x.rank)))
    now_variance = node(ms.ReduceMeanOp, node(ms.SquareOp, centred), axis=axes)
    y = _batch_normalised(node, x, scale, offset, now_mean, now_variance, epsilon)
    return [y, _mixed(node, mean, now_mean, keep), _mixed(node, variance, now_variance, keep)]


def _mixed(node: Node, old: OnnxValue, new: OnnxValue, keep: float) -> OnnxValue:
    return node(ms.AddOp, node(ms.MulOp, old, keep), node(ms.MulOp, new, 1 - keep))


def _channels(vector: OnnxValue, rank: int) -> tuple[int, ...]:
    return (*vector.shape, *(1 for _ in range(rank - 2)))


def _batch_normalised(
    node: Node, x: OnnxValue, scale: OnnxValue, offset: OnnxValue, mean: OnnxValue, variance: OnnxValue, epsilon: float
) -> OnnxValue:
    if len({x.dtype, scale.dtype, mean.dtype, variance.dtype}) == 1 and x.rank >= 2:
        return node(ms.BatchNormOp, x, scale, offset, mean, variance, epsilon=epsilon)
    wide = mean.dtype
    vectors = [node.reshape(node.cast(v, wide), _channels(v, x.rank)) for v in (scale, offset, mean, variance)]
    deviation = node(ms.SqrtOp, node(ms.AddOp, vectors[3], epsilon))
    normal = node(ms.DivOp, node(ms.SubOp, node.cast(x, wide), vectors[2]), deviation)
    return node.cast(node(ms.AddOp, node(ms.MulOp, normal, vectors[0]), vectors[1]), x.dtype)


@importer("InstanceNormalization")
def _instance_norm(node: Node) -> OnnxValue:
    return node(ms.InstanceNormOp, node[0], node[1], node[2], epsilon=node.real("epsilon", 1e-5))


@importer("LayerNormalization")
def _layer_norm(node: Node) -> list[Slot]:
    """The operation where scale and bias have the shape of the normalised axes; else its formula."""
    x, scale, bias = node[0], node[1], node.get(2)
    axis, epsilon = node.axis(node.int_("axis", -1), x.rank), node.real("epsilon", 1e-5)
    stash = dtype_of(node.int_("stash_type", 1), node.label)
    tail = node.shape_of(x)[axis:]
    fits = scale.shape == tail and (bias is None or bias.shape == tail)
    if fits and stash == x.dtype and not node.wants(1) and not node.wants(2):
        return [node(ms.LayerNormOp, x, scale, bias, begin_norm_axis=axis, epsilon=epsilon)]
    axes, wide = list(range(axis, x.rank)), node.cast(x, stash)
    mean = node(ms.ReduceMeanOp, wide, axis=axes, keep_dims=True)
    centred = node(ms.SubOp, wide, mean)
    variance = node(ms.ReduceMeanOp, node(ms.SquareOp, centred), axis=axes, keep_dims=True)
    inverse = node(ms.ReciprocalOp, node(ms.SqrtOp, node(ms.AddOp, variance, epsilon)))
    y = node(ms.MulOp, node.cast(node(ms.MulOp, centred, inverse), x.dtype), scale)
    return [y if bias is None else node(ms.AddOp, y, bias), mean, inverse]


@importer("RMSNormalization")
def _rms_norm(node: Node) -> OnnxValue:
    x, scale = node[0], node[1]
    axis, epsilon = node.axis(node.int_("axis", -1), x.rank), node.real("epsilon", 1e-5)
    stash = dtype_of(node.int_("stash_type", 1), node.label)
    if scale.shape == node.shape_of(x)[axis:] and stash == x.dtype:
        return node(ms.RmsNormOp, x, scale, begin_norm_axis=axis, epsilon=epsilon)
    wide = node.cast(x, stash)
    mean = node(ms.ReduceMeanOp, node(ms.SquareOp, wide), axis=list(range(axis, x.rank)), keep_dims=True)
    normal = node(ms.DivOp, wide, node(ms.SqrtOp, node(ms.AddOp, mean, epsilon)))
    return node(ms.MulOp, node.cast(normal, x.dtype), scale)


@importer("GroupNormalization")
def _group_norm(node: Node) -> OnnxValue:
    """One scale and bias a channel; before opset 21, one a group."""
    x, scale, bias = node[0], node[1], node[2]
    groups, channels = node.int_("num_groups", 1), node.size_of(x, 1)
    if scale.shape[0] != channels:
        places = node.constant(node.arange(channels) * groups // channels)
        scale, bias = node(ms.GatherOp, scale, places), node(ms.GatherOp, bias, places)
    return node(ms.GroupNormOp, x, scale, bias, num_groups=groups, epsilon=node.real("epsilon", 1e-5))


@importer("LpNormalization")
def _lp_norm(node: Node) -> OnnxValue:
    """Zero where the norm is zero."""
    x, axis = node[0], node.int_("axis", -1)
    if node.int_("p", 2) == 1:
        norm = node(ms.ReduceSumOp, node(ms.AbsOp, x), axis=[axis], keep_dims=True)
    else:
        norm = node(ms.SqrtOp, node(ms.ReduceSumOp, node(ms.SquareOp, x), axis=[axis], keep_dims=True))
    zero = node.scalar(0, x.dtype)
    return node(ms.SelectOp, node(ms.EqualOp, norm, zero), zero, node(ms.DivOp, x, norm))


@importer("LRN")
def _lrn(node: Node) -> OnnxValue:
    """Local response normalisation over neighbouring channels: a sum pool along them."""
    x, size = node[0], node.int_("size", 1)
    n, c, *spatial = node.shape_of(x)
    squares = node.reshape(node(ms.SquareOp, x), (n, 1, c, math.prod(spatial)))
    before, after = (size - 1) // 2, size - 1 - (size - 1) // 2
    padded = node(ms.PadOp, squares, pad=[0, 0, before, 0, 0, 0, after, 0])
    sums = node.reshape(node(ms.SumPool2dOp, padded, kernel_size=[size, 1]), node.shape_of(x))
    alpha, beta, bias = node.real("alpha", 1e-4), node.real("beta", 0.75), node.real("bias", 1.0)
    base = node(ms.AddOp, node(ms.MulOp, sums, float(numpy_dtype("f32").type(alpha / size))), bias)
    return node(ms.DivOp, x, node(ms.PowOp, base, beta))
