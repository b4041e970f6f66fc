"""Convolution, transposed convolution, fully connected layers and matrix products."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from msc.dialects import ms
from msc.dialects.arrays import Array
from msc.dialects.element_types import element_type
from msc.dialects.ms.base import MsOp
from msc.dialects.ms.windows import Window
from msc.importers.tflite import fixed_point
from msc.importers.tflite.integers import (
    Codes,
    by_factors,
    centred,
    codes,
    has_codes,
    is_quantised,
    limited,
    rescaled,
    result_codes,
    zero_moved,
)
from msc.importers.tflite.node import TfliteNode, TfliteValue
from msc.importers.tflite.operators.activations import activated, limits_only
from msc.importers.tflite.registry import importer
from msc.poly.compute import integer_range

SAME, VALID = 0, 1


def padding_of(node: TfliteNode, mode: int, spatial: Sequence[int], windows: Sequence[Window]) -> list[tuple[int, int]]:
    """What SAME or VALID adds before and after each spatial axis."""
    if mode not in (SAME, VALID):
        raise node.failure("MSC0711", f"its padding has the number {mode}")
    if min((n for w in windows for n in (w.size, w.stride, w.dilation)), default=1) < 1:
        raise node.failure("MSC0711", "its window, strides and dilations must be 1 or more")
    if mode == VALID:
        return [(0, 0)] * len(windows)
    totals = [max((-(-n // w.stride) - 1) * w.stride + w.span - n, 0) for n, w in zip(spatial, windows, strict=True)]
    return [(total // 2, total - total // 2) for total in totals]


def _flat(pads: Sequence[tuple[int, int]]) -> list[int]:
    return [n for pair in pads for n in pair]


@importer("CONV_2D", "DEPTHWISE_CONV_2D", "CONV_3D")
def _convolution(node: TfliteNode) -> TfliteValue:
    x, w, name = node[0], node[1], node.record.name
    spatial = 3 if name == "CONV_3D" else 2
    if x.rank != spatial + 2 or w.rank != spatial + 2:
        raise node.failure("MSC0711", f"its image is a {x.type} and its weight a {w.type}: of {spatial + 2} axes")
    kind = {"CONV_2D": "Conv2DOptions", "CONV_3D": "Conv3DOptions"}.get(name, "DepthwiseConv2DOptions")
    options = node.options(kind)
    axes = "DHW"[-spatial:]
    stride = [int(getattr(options, f"Stride{a}")()) for a in axes]
    dilation = [int(getattr(options, f"Dilation{a}Factor")()) for a in axes]
    if name == "DEPTHWISE_CONV_2D":
        perm, channel_axis, group, kernel = (3, 0, 1, 2), 3, x.shape[-1], w.shape[1:3]
    elif name == "CONV_2D":
        perm, channel_axis, group, kernel = (0, 3, 1, 2), 0, _groups(node, x.shape[-1], w.shape[-1]), w.shape[1:3]
    else:
        perm, channel_axis, group, kernel = (4, 3, 0, 1, 2), 4, _groups(node, x.shape[-1], w.shape[3]), w.shape[:3]
    windows = [Window(*each) for each in zip(kernel, stride, dilation, strict=True)]
    pads = padding_of(node, int(options.Padding()), x.shape[1:-1], windows)
    operation: type[MsOp] = ms.Conv3dOp if spatial == 3 else ms.Conv2dOp
    activation, bias = int(options.FusedActivationFunction()), node.get(2)
    sizes = {"stride": stride, "dilation": dilation, "group": group}
    if is_quantised(x):
        image, weight = node.first(x), _weight(node, w, perm)
        padded = _padded(node, image, pads, codes(node, 0).zero)
        sums = _sums(node, operation, padded, weight, **sizes)
        # Of each output channel, what all its weights sum up to.
        along = (-1, *(1 for _ in range(spatial)))
        return node.last(_requantised(node, sums, w, channel_axis, bias, along, activation))
    weight = node.transpose(_real_weight(node, w, channel_axis), perm)
    bias = None if bias is None else node.cast(bias, "f32")
    y = node(operation, node.first(x), weight, bias, **sizes, pad_mode="pad", pad=_flat(pads))
    return node.last(activated(node, y, activation))


def _groups(node: TfliteNode, channels: int, taken: int) -> int:
    if taken < 1 or channels % taken:
        raise node.failure("MSC0711", f"its image has {channels} channels, its weight takes {taken}")
    return channels // taken


def _real_weight(node: TfliteNode, w: TfliteValue, axis: int) -> TfliteValue:
    """Weights of reals; those of integers beside an input of reals are weights alone: what they stand for."""
    if not has_codes(w) or w.quantisation is None:
        return node.cast(w, "f32")
    shape = [-1 if a == w.quantisation.axis and w.quantisation.scales.size > 1 else 1 for a in range(w.rank)]
    scale = node.constant(w.quantisation.scales.reshape(shape if w.quantisation.scales.size > 1 else ()))
    zeros = w.quantisation.zeros.astype(w.array.dtype if w.array is not None else np.int8)
    zero = node.constant(zeros.reshape(scale.shape)) if zeros.any() else None
    return node(ms.DequantizeOp, node.unevaluated(w) if w.array is not None else w, scale, zero)


def _weight(node: TfliteNode, w: TfliteValue, perm: Sequence[int]) -> TfliteValue:
    """Weights of integers without their zero point, in bytes where that is none."""
    if w.dtype == "i16" or w.array is None:
        raise node.failure("MSC0704", f"its weight is a {w.type} that is {'computed' if w.array is None else 'wide'}")
    turned = node.transpose(w, perm)
    zeros = w.quantisation.zeros if w.quantisation is not None else np.zeros(1, np.int64)
    if not zeros.any():
        return turned
    assert turned.array is not None
    if not (np.abs(zeros) < 256).all():
        raise node.failure("MSC0730", f"its weight of {w.dtype} has the zero point {zeros[0]}")
    if zeros.size > 1:
        raise node.failure("MSC0730", "its weight has a zero point an index, which no kernel computes")
    return node.constant(turned.array.astype(np.int32) - int(zeros[0]), w.label)


def _padded(node: TfliteNode, image: TfliteValue, pads: Sequence[tuple[int, int]], value: int) -> TfliteValue:
    if not any(map(any, pads)):
        return image
    begin, end = ([0, 0, *(pair[k] for pair in pads)] for k in (0, 1))
    return node(ms.PadOp, image, pad=[*begin, *end], value=float(value))


def _sums(node: TfliteNode, operation: type[MsOp], x: TfliteValue, w: TfliteValue, **properties: object) -> TfliteValue:
    """Sums of products in i32, of bytes where both are; of other numbers, in i32 or, of 16 bits, in i64."""
    given: dict[str, object] = dict(properties)
    if x.dtype in ("i8", "ui8") and w.dtype in ("i8", "ui8"):
        return node(operation, x, w, dtype=element_type("i32"), **given)  # pyright: ignore[reportArgumentType]
    wide = "i64" if x.dtype == "i16" else "i32"
    return node(operation, node.cast(x, wide), node.cast(w, wide), **given)  # pyright: ignore[reportArgumentType]


def _requantised(
    node: TfliteNode,
    sums: TfliteValue,
    w: TfliteValue,
    axis: int,
    bias: TfliteValue | None,
    along: Sequence[int],
    activation: int,
    product: Array | None = None,
) -> TfliteValue:
    """Sums of x times weights as integers of the result: the zero point of x and the bias in one number a channel."""
    given, result = codes(node, 0), result_codes(node)
    channels = w.shape[axis]
    if w.quantisation is None or w.array is None:
        raise node.failure("MSC0730", f"its weight of {w.dtype} has no scale")
    others = tuple(a for a in range(w.rank) if a != axis)
    weights = w.array.astype(np.int64).reshape(w.shape) - int(w.quantisation.zeros[0])
    by_channel = weights.sum(axis=others)
    most = np.abs(weights).sum(axis=others) * max(map(abs, integer_range(given.dtype)))
    most += np.abs(given.zero * by_channel)
    if bias is not None and bias.array is not None and bias.array.size == channels:
        most += np.abs(bias.array.reshape(-1).astype(np.int64))
    sums = zero_moved(node, sums, by_channel, given.zero, bias, along)
    scales = w.quantisation.scales.astype(np.float64)
    factors = product if product is not None else float(given.scale) * scales / float(result.scale)
    low, high = result.limits(limits_only(node, activation))
    return limited(node, _rescaled_sums(node, sums, factors, result, along, int(most.max(initial=0))), low, high)


def _rescaled_sums(
    node: TfliteNode, sums: TfliteValue, factors: Array, result: Codes, along: Sequence[int], most: int
) -> TfliteValue:
    if sums.dtype == "i32":
        return rescaled(node, sums, factors, zero=result.zero, dtype=result.dtype, shape=along, most=most)
    # Of sums in i64, the multiplier has 16 bits, and the product is rounded once.
    pairs = [fixed_point.factor(float(f)) for f in np.reshape(factors, -1)]
    pairs = [(0x7FFF if m >= 0x7FFF0000 else (m + (1 << 15)) >> 16, s + 16) for m, s in pairs]
    many = len(set(pairs)) > 1
    arrays = [np.array(c, np.int32).reshape(along if many else (-1,)) for c in zip(*pairs, strict=True)]
    multiplier, shift = (node.constant(a if many else a[0]) for a in arrays)
    target = element_type(result.dtype)
    return node(
        ms.RescaleOp, sums, multiplier, shift, node.scalar(result.zero, result.dtype), dtype=target, rounding="single"
    )


@importer("TRANSPOSE_CONV")
def _transposed_convolution(node: TfliteNode) -> TfliteValue:
    """Its weight is `[oc, kh, kw, ic]`; the size of its result is an input."""
    shape, w, x, bias = node.ints(0, "output shape"), node[1], node[2], node.get(3)
    if x.rank != 4 or w.rank != 4 or len(shape) != 4:
        raise node.failure("MSC0711", f"its image is a {x.type} and its weight a {w.type}: of 4 axes")
    options = node.options("TransposeConvOptions")
    stride = [int(options.StrideH()), int(options.StrideW())]
    mode, kernel, spatial = int(options.Padding()), w.shape[1:3], x.shape[1:3]
    if min(*stride, *kernel) < 1 or mode not in (SAME, VALID):
        raise node.failure("MSC0711", "its window and strides must be 1 or more")
    full = [(n - 1) * s + k for n, s, k in zip(spatial, stride, kernel, strict=True)]
    cuts = [max(f - m, 0) if mode == SAME else 0 for f, m in zip(full, shape[1:3], strict=True)]
    begin = [cut // 2 for cut in cuts]
    ends = [f - b - m for f, b, m in zip(full, begin, shape[1:3], strict=True)]
    sizes = {
        "stride": stride,
        "pad_mode": "pad",
        "pad": _flat([(b, max(e, 0)) for b, e in zip(begin, ends, strict=True)]),
        "output_padding": [max(-e, 0) for e in ends],
    }
    activation = int(options.FusedActivationFunction())
    if is_quantised(x):
        image = centred(node, node.first(x), Codes(node, x, "input 2").zero)
        if w.array is None:
            raise node.failure("MSC0704", "its weight is computed")
        weight = node.unevaluated(node.cast(node.transpose(w, (3, 0, 1, 2)), "i32"))
        sums = node(ms.Conv2dTransposeOp, image, weight, **sizes)
        return node.last(_requantised_transposed(node, sums, w, bias, activation))
    weight = node.transpose(_real_weight(node, w, 0), (3, 0, 1, 2))
    bias = None if bias is None else node.cast(bias, "f32")
    y = node(ms.Conv2dTransposeOp, node.first(x), weight, bias, **sizes)
    return node.last(activated(node, y, activation))


def _requantised_transposed(
    node: TfliteNode, sums: TfliteValue, w: TfliteValue, bias: TfliteValue | None, activation: int
) -> TfliteValue:
    given, result = Codes(node, node[2], "input 2"), result_codes(node)
    if w.quantisation is None or w.quantisation.zeros.any():
        raise node.failure("MSC0730", "its weight has no scale, or a zero point")
    if bias is not None:
        if bias.array is None:
            raise node.failure("MSC0711", "its bias is computed")
        sums = node(ms.AddOp, sums, node.constant(bias.array.astype(np.int32).reshape(-1, 1, 1)))
    factors = float(given.scale) * w.quantisation.scales.astype(np.float64) / float(result.scale)
    y = rescaled(node, sums, factors, zero=result.zero, dtype=result.dtype, shape=(-1, 1, 1))
    return limited(node, y, *result.limits(limits_only(node, activation)))


@importer("FULLY_CONNECTED")
def _fully_connected(node: TfliteNode) -> TfliteValue:
    x, w, bias = node[0], node[1], node.get(2)
    options = node.options("FullyConnectedOptions")
    if int(options.WeightsFormat()) != 0 or w.rank != 2:
        raise node.failure("MSC0711", f"its weight is a {w.type} in another order than [outputs, inputs]")
    outputs, inputs = w.shape
    count = math.prod(x.shape)
    if inputs < 1 or count % inputs:
        raise node.failure("MSC0711", f"its input is a {x.type}, its weight takes {inputs} numbers")
    rows = node.reshape(x, (count // inputs, inputs))
    activation = int(options.FusedActivationFunction())
    if is_quantised(x):
        sums = _sums(node, ms.MatmulOp, rows, _weight(node, w, (0, 1)), transpose_b=True)
        product = None
        if w.quantisation is not None and w.quantisation.scales.size == 1:
            given, result = codes(node, 0), result_codes(node)
            product = np.array([float(given.scale * w.quantisation.scales[0]) / float(result.scale)])
        y = _requantised(node, sums, w, 0, bias, (-1,), activation, product)
    else:
        weight = _real_weight(node, w, 0)
        if bias is not None and math.prod(bias.shape) != outputs:
            raise node.failure("MSC0711", f"its bias is a {bias.type}, for {outputs} outputs")
        bias = None if bias is None else node.reshape(node.cast(bias, "f32"), (outputs,))
        y = activated(node, node(ms.DenseOp, rows, weight, bias), activation)
    keeps = bool(options.KeepNumDims()) and x.rank > 0
    return node.reshape(y, (*x.shape[:-1], outputs)) if keeps else y


@importer("BATCH_MATMUL")
def _batch_matmul(node: TfliteNode) -> TfliteValue:
    a, b = node[0], node[1]
    options = node.options("BatchMatMulOptions")
    flags = {"transpose_a": bool(options.AdjX()), "transpose_b": bool(options.AdjY())}
    operation: type[MsOp] = ms.MatmulOp if a.rank == b.rank == 2 else ms.BatchMatmulOp
    if not is_quantised(a):
        return node(operation, a, _real_weight(node, b, 0), **flags)
    left, right, result = codes(node, 0), codes(node, 1), result_codes(node)
    product = node(operation, centred(node, a, left.zero), centred(node, b, right.zero), **flags)
    real = float(left.scale) * float(right.scale) / float(result.scale)
    return by_factors(node, product, [fixed_point.factor(real)], zero=result.zero, dtype=result.dtype)
