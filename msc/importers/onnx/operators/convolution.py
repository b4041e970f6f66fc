"""Convolution, transposed convolution, and what is built like them."""

from __future__ import annotations

import math

import numpy as np

from msc.dialects import ms
from msc.dialects.ms.base import MsOp
from msc.importers.onnx.node import Node
from msc.importers.onnx.operators.windows import AUTO_PADS, WindowAttributes, halves, window_attributes
from msc.importers.onnx.registry import importer
from msc.importers.onnx.values import OnnxValue

CONVOLUTIONS: dict[int, type[MsOp]] = {1: ms.Conv1dOp, 2: ms.Conv2dOp, 3: ms.Conv3dOp}
TRANSPOSED: dict[int, type[MsOp]] = {1: ms.Conv1dTransposeOp, 2: ms.Conv2dTransposeOp, 3: ms.Conv3dTransposeOp}


def by_rank(node: Node, operations: dict[int, type[MsOp]], x: OnnxValue) -> type[MsOp]:
    """The operation for the spatial axes of `x`. Raises MSC0711."""
    if x.rank - 2 not in operations:
        raise node.failure("MSC0711", f"msc has it for 1 to 3 spatial axes, but x is a {x.type}")
    return operations[x.rank - 2]


@importer("Conv")
def _conv(node: Node) -> OnnxValue:
    return convolution(node, node[0], node[1], node.get(2))


def convolution(node: Node, x: OnnxValue, weight: OnnxValue, bias: OnnxValue | None) -> OnnxValue:
    """A convolution as the node's attributes say."""
    window = window_attributes(node, node.shape_of(x, 2), node.shape_of(weight, 2))
    return node(
        by_rank(node, CONVOLUTIONS, x),
        x,
        weight,
        bias,
        group=node.int_("group", 1),
        stride=window.stride,
        dilation=window.dilation,
        **window.padding_properties,
    )


@importer("ConvTranspose")
def _conv_transpose(node: Node) -> OnnxValue:
    """Negative padding, which a wanted output shape may need, is `output_padding` or cut off afterwards."""
    x, weight = node[0], node[1]
    spatial, kernel = node.shape_of(x, 2), node.shape_of(weight, 2)
    rank = len(spatial)
    stride, dilation = node.ints("strides") or [1] * rank, node.ints("dilations") or [1] * rank
    more = node.ints("output_padding") or [0] * rank
    if not len(stride) == len(dilation) == len(more) == rank:
        raise node.failure("MSC0711", f"strides, dilations or output_padding do not fit {rank} spatial axes")
    full = [
        (n - 1) * s + (k - 1) * d + 1 + m for n, s, k, d, m in zip(spatial, stride, kernel, dilation, more, strict=True)
    ]
    pads = _transposed_pads(node, spatial, stride, full)
    window = WindowAttributes(
        tuple(kernel), tuple(stride), tuple(dilation), tuple((max(b, 0), max(e, 0)) for b, e in pads)
    )
    extra = [m + max(-e, 0) for m, (_, e) in zip(more, pads, strict=True)]
    y = node(
        by_rank(node, TRANSPOSED, x),
        x,
        weight,
        node.get(2),
        group=node.int_("group", 1),
        stride=stride,
        dilation=dilation,
        output_padding=extra,
        **window.padding_properties,
    )
    front = [max(-b, 0) for b, _ in pads]
    return node(ms.PadOp, y, pad=[0, 0, *front, *(0 for _ in range(y.rank))]) if any(front) else y


def _transposed_pads(node: Node, spatial: tuple[int, ...], stride: list[int], full: list[int]) -> list[tuple[int, int]]:
    """What is cut off the full output at both ends of each axis; what an `output_shape` has more stands at the end."""
    mode, rank = node.choice("auto_pad", "NOTSET", AUTO_PADS), len(spatial)
    if node.given("output_shape"):
        wanted = node.ints("output_shape")[-rank:]
        totals = [f - w for f, w in zip(full, wanted, strict=True)]
        longer = "SAME_UPPER" if mode == "SAME_UPPER" else "SAME_LOWER"
        return [halves(t, longer) if t > 0 else (0, t) for t in totals]
    if mode in ("SAME_UPPER", "SAME_LOWER"):
        totals = [max(f - n * s, 0) for f, n, s in zip(full, spatial, stride, strict=True)]
        return [halves(t, mode) for t in totals]
    pads = node.ints("pads") or [0] * (2 * rank)
    if len(pads) != 2 * rank:
        raise node.failure("MSC0711", f"pads have {len(pads)} entries, for {rank} spatial axes")
    return list(zip(pads[:rank], pads[rank:], strict=True))


@importer("Col2Im")
def _col2im(node: Node) -> OnnxValue:
    """Each block position adds its window to the image: a transposed convolution with one-hot weights.

    Source: ONNX Col2Im; the columns are `[n, c * window, positions]`.
    """
    x, image = node[0], node.known_ints(1, "image_shape")
    kernel = node.known_ints(2, "block_shape")
    window = window_attributes(node, image, kernel)
    counts = [
        (n + b + e - span) // s + 1
        for n, (b, e), span, s in zip(image, window.pads, window.spans, window.stride, strict=True)
    ]
    batch, columns, _ = node.shape_of(x)
    taps = math.prod(kernel)
    channels = columns // taps
    node.check_table(columns, taps)
    weight = np.zeros((columns, 1, *kernel))
    weight[np.arange(columns), 0, *np.unravel_index(np.arange(columns) % taps, kernel)] = 1
    full = [(c - 1) * s + span for c, s, span in zip(counts, window.stride, window.spans, strict=True)]
    more = [max(n + b + e - f, 0) for n, (b, e), f in zip(image, window.pads, full, strict=True)]
    grid = node.reshape(x, (batch, columns, *counts))
    return node(
        by_rank(node, TRANSPOSED, grid),
        grid,
        node.cast(node.constant(weight), x.dtype),
        group=channels,
        stride=window.stride,
        dilation=window.dilation,
        output_padding=more,
        **window.padding_properties,
    )
