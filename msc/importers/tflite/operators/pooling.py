"""Pooling of images."""

from __future__ import annotations

import numpy as np

from msc.dialects import ms
from msc.dialects.ms.windows import Window
from msc.importers.tflite.integers import is_quantised, limited, result_codes
from msc.importers.tflite.node import TfliteNode, TfliteValue
from msc.importers.tflite.operators.activations import activated, limits_only
from msc.importers.tflite.operators.convolution import padding_of
from msc.importers.tflite.registry import importer


@importer("AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D")
def _pool(node: TfliteNode) -> TfliteValue:
    x, options = node[0], node.options("Pool2DOptions")
    if x.rank != 4:
        raise node.failure("MSC0711", f"its image is a {x.type}: of 4 axes")
    kernel = [int(options.FilterHeight()), int(options.FilterWidth())]
    stride = [int(options.StrideH()), int(options.StrideW())]
    windows = [Window(k, s, 1) for k, s in zip(kernel, stride, strict=True)]
    pads = padding_of(node, int(options.Padding()), x.shape[1:3], windows)
    sizes = {"kernel_size": kernel, "stride": stride, "pad_mode": "pad", "pad": [n for pair in pads for n in pair]}
    activation, image = int(options.FusedActivationFunction()), node.first(x)
    if node.record.name == "MAX_POOL_2D":
        y = node(ms.MaxPool2dOp, image, **sizes)
    elif is_quantised(x):
        y = _mean_of_integers(node, image, kernel, stride, pads)
    elif node.record.name == "L2_POOL_2D":
        y = node(ms.SqrtOp, node(ms.AvgPool2dOp, node(ms.SquareOp, image), **sizes))
    else:
        y = node(ms.AvgPool2dOp, image, **sizes)
    if is_quantised(x):
        return node.last(limited(node, y, *result_codes(node).limits(limits_only(node, activation))))
    return node.last(activated(node, y, activation))


def _mean_of_integers(
    node: TfliteNode, x: TfliteValue, kernel: list[int], stride: list[int], pads: list[tuple[int, int]]
) -> TfliteValue:
    """The mean of the elements of a window that lie in the image, ties away from zero: no zero point takes part."""
    if node.record.name != "AVERAGE_POOL_2D":
        raise node.failure("MSC0704", "msc has it for floats")
    wide = node.cast(x, "i32")
    pad = [n for pair in pads for n in pair]
    total = node(ms.SumPool2dOp, wide, kernel_size=kernel, stride=stride, pad_mode="pad", pad=pad)
    counts = [
        np.minimum(first + k, n) - np.maximum(first, 0)
        for n, k, s, (b, _), count in zip(x.shape[2:], kernel, stride, pads, total.shape[2:], strict=True)
        for first in (np.arange(count) * s - b,)
    ]
    valid = np.outer(*counts).astype(np.int32)
    many = valid.size > 0 and valid.min() != valid.max()
    count = node.constant(valid if many else np.asarray(valid.flat[0] if valid.size else 1, np.int32))
    return node.cast(divided(node, total, count), x.dtype)


def divided(node: TfliteNode, x: TfliteValue, count: TfliteValue) -> TfliteValue:
    """Integers over numbers of elements, ties away from zero."""
    half = node(ms.ShiftRightOp, count, 1)
    sign = node(ms.SelectOp, node(ms.GreaterOp, x, 0), half, node(ms.SubOp, node.scalar(0, "i32"), half))
    return node(ms.DivOp, node(ms.AddOp, x, sign), count)
