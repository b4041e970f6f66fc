"""Pooling over windows and over all of an image."""

from __future__ import annotations

import math

import numpy as np

from msc.dialects import ms
from msc.dialects.arrays import Array
from msc.dialects.ms.base import MsOp
from msc.importers.onnx.node import Node
from msc.importers.onnx.operators.convolution import by_rank
from msc.importers.onnx.operators.movement import cut
from msc.importers.onnx.operators.scattering import written
from msc.importers.onnx.operators.windows import WindowAttributes, window_attributes
from msc.importers.onnx.registry import importer
from msc.importers.onnx.values import OnnxValue

MAX_POOLS: dict[int, type[MsOp]] = {1: ms.MaxPool1dOp, 2: ms.MaxPool2dOp, 3: ms.MaxPool3dOp}
SUM_POOLS: dict[int, type[MsOp]] = {1: ms.SumPool1dOp, 2: ms.SumPool2dOp, 3: ms.SumPool3dOp}
AVG_POOLS: dict[int, type[MsOp]] = {1: ms.AvgPool1dOp, 2: ms.AvgPool2dOp, 3: ms.AvgPool3dOp}


def pooling_window(node: Node) -> WindowAttributes:
    """The window of a pooling, as the node's attributes say."""
    return window_attributes(node, node.shape_of(node[0], 2), node.ints("kernel_shape"), crops=True)


def pooled(
    node: Node, operations: dict[int, type[MsOp]], x: OnnxValue, window: WindowAttributes, **more: bool
) -> OnnxValue:
    """A pooling; what a negative padding cuts off is cut off first."""
    cuts = {axis: (max(-b, 0), x.shape[axis] - max(-e, 0), 1) for axis, (b, e) in enumerate(window.pads, 2)}
    x = cut(node, x, cuts) if any(min(pair) < 0 for pair in window.pads) else x
    return node(
        by_rank(node, operations, x),
        x,
        kernel_size=window.kernel,
        stride=window.stride,
        dilation=window.dilation,
        ceil_mode=node.flag("ceil_mode"),
        **window.padding_properties,
        **more,
    )


@importer("MaxPool")
def _max_pool(node: Node) -> list[OnnxValue]:
    window = pooling_window(node)
    largest = pooled(node, MAX_POOLS, node[0], window)
    return [largest, _places(node, window, largest)] if node.wants(1) else [largest]


def _places(node: Node, window: WindowAttributes, pooled: OnnxValue) -> OnnxValue:
    """Where each window's largest element stands in x; with `storage_order` an image is counted by columns."""
    x = node[0]
    n, c, *spatial = node.shape_of(x)
    outputs = pooled.shape[2:]
    node.check_table(2 * len(spatial), *outputs, *window.kernel)
    places = _taps(window, spatial, outputs)
    flat = node.reshape(x, (n, c, math.prod(spatial)))
    taps = node.reshape(node(ms.GatherOp, flat, node.constant(places), axis=2), (n, c, *places.shape))
    best = node(ms.ArgmaxOp, taps, axis=-1, keep_dims=True)
    names = _column_major(places, spatial) if node.flag("storage_order") else places
    all_names = node(ms.BroadcastToOp, node.constant(names), shape=[n, c, *places.shape])
    within = node.reshape(node(ms.GatherElementsOp, all_names, best, axis=3), (n, c, *outputs))
    numbers = node(ms.IotaOp, shape=[n * c], axis=0, dtype=within.type.element_type)
    images = node.reshape(numbers, (n, c, *(1 for _ in spatial)))
    return node(ms.AddOp, within, node(ms.MulOp, images, math.prod(spatial)))


def _taps(window: WindowAttributes, spatial: list[int], outputs: tuple[int, ...]) -> Array:
    """For each output and each element of its window: the flat place in the image; of padding that of the first inside.

    Padding is never the largest, also where an element inside has the least value of its type.
    """
    rank = len(spatial)
    grid = np.indices((*outputs, *window.kernel)).astype(np.int64)
    at = [grid[a] * window.stride[a] + grid[rank + a] * window.dilation[a] - window.pads[a][0] for a in range(rank)]
    inside = np.logical_and.reduce([(p >= 0) & (p < n) for p, n in zip(at, spatial, strict=True)])
    flat = np.zeros_like(at[0])
    for p, n in zip(at, spatial, strict=True):
        flat = flat * n + np.clip(p, 0, n - 1)
    shape = math.prod(outputs), math.prod(window.kernel)
    flat, inside = flat.reshape(shape), inside.reshape(shape)
    first = np.take_along_axis(flat, inside.argmax(axis=1)[:, None], axis=1)
    return np.where(inside, flat, first)


def _column_major(places: Array, spatial: list[int]) -> Array:
    """Flat places with the axes counted the other way round: the first one fastest."""
    coordinates = np.unravel_index(places, spatial)
    return np.ravel_multi_index(coordinates[::-1], spatial[::-1]).astype(np.int64)


@importer("AveragePool")
def _average_pool(node: Node) -> OnnxValue:
    window = pooling_window(node)
    return pooled(node, AVG_POOLS, node[0], window, count_include_pad=node.flag("count_include_pad"))


@importer("LpPool")
def _lp_pool(node: Node) -> OnnxValue:
    p = _exponent(node)
    powers = node(ms.PowOp, node(ms.AbsOp, node[0]), p)
    return node(ms.PowOp, pooled(node, SUM_POOLS, powers, pooling_window(node)), 1 / p)


def _exponent(node: Node) -> float:
    """The exponent of an Lp norm. Raises MSC0711 if it makes no norm."""
    p = node.int_("p", 2)
    if p < 1:
        raise node.failure("MSC0711", f"p is {p}; the exponent of a norm is 1 or more")
    return float(p)


@importer("GlobalAveragePool")
def _global_average(node: Node) -> OnnxValue:
    return node(ms.GlobalAvgPoolOp, node[0])


@importer("GlobalMaxPool")
def _global_max(node: Node) -> OnnxValue:
    return node(ms.GlobalMaxPoolOp, node[0])


@importer("GlobalLpPool")
def _global_lp(node: Node) -> OnnxValue:
    x, p = node[0], _exponent(node)
    powers = node(ms.PowOp, node(ms.AbsOp, x), p)
    total = node(ms.ReduceSumOp, powers, axis=list(range(2, x.rank)), keep_dims=True)
    return node(ms.PowOp, total, 1 / p)


@importer("MaxUnpool")
def _max_unpool(node: Node) -> OnnxValue:
    """Each element is written to its place of a zero image."""
    x, places = node[0], node[1]
    n, c, *spatial = node.shape_of(x)
    kernel, rank = node.ints("kernel_shape"), len(spatial)
    stride, pads = node.ints("strides") or [1] * rank, node.ints("pads") or [0] * (2 * rank)
    natural = [
        (size - 1) * s - pads[a] - pads[rank + a] + k
        for a, (size, s, k) in enumerate(zip(spatial, stride, kernel, strict=True))
    ]
    output = node.known_ints(2, "output_shape")[2:] if node.has(2) else natural
    count = math.prod(spatial)
    # The places are counted over the whole tensor or the image; the image they were taken from has the natural sizes.
    within = node(ms.ModOp, places, math.prod(natural))
    if natural != output:
        within = _moved(node, within, natural, output)
    size, total = math.prod(output), n * c * count
    image = node.constant(node.arange(n * c).reshape(-1, 1) * size)
    at = node(ms.AddOp, node.cast(node.reshape(within, (n * c, count)), "i64"), image)
    empty = node(ms.BroadcastToOp, node.scalar(0, x.dtype), shape=[n * c * size])
    y = written(node, empty, node.reshape(at, (total,)), node.reshape(x, (total,)))
    return node.reshape(y, (n, c, *output))


def _moved(node: Node, flat: OnnxValue, old: list[int], new: list[int]) -> OnnxValue:
    """Flat places of an image of sizes `old` in one of sizes `new`."""
    result, rest = node.scalar(0, flat.dtype), flat
    for axis in range(len(old)):
        below = math.prod(old[axis + 1 :])
        coordinate, rest = node(ms.DivOp, rest, below), node(ms.ModOp, rest, below)
        result = node(ms.AddOp, result, node(ms.MulOp, coordinate, math.prod(new[axis + 1 :])))
    return result
