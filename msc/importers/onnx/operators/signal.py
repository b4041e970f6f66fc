"""Fourier transforms as matrix products, and tables for sound."""

from __future__ import annotations

import math

import numpy as np

from msc.dialects import ms
from msc.dialects.arrays import Array, numpy_dtype
from msc.importers.onnx.node import Node
from msc.importers.onnx.operators.linear import product
from msc.importers.onnx.operators.movement import cut, transposed
from msc.importers.onnx.reading.tensors import dtype_of
from msc.importers.onnx.registry import importer
from msc.importers.onnx.values import OnnxValue


def _fourier(size: int, inverse: bool) -> tuple[Array, Array]:
    """Cosines and sines of the transform, symmetric matrices."""
    # The product is reduced before it is multiplied, so that large ones lose no digits.
    angles = 2 * np.pi * (np.outer(np.arange(size), np.arange(size)) % size) / size
    scale = 1 / size if inverse else 1.0
    return np.cos(angles) * scale, np.sin(angles) * (scale if inverse else -scale)


def fourier(node: Node, x: OnnxValue, size: int, inverse: bool, onesided: bool, real_output: bool = False) -> OnnxValue:
    """The transform of `[..., n, 1 or 2]` along n, cut or padded to `size`; `[..., bins, 2]` (or 1)."""
    n = x.shape[-2]
    if n > size:
        x = cut(node, x, {x.rank - 2: (0, size, 1)})
    elif n < size:
        pad = [0] * (2 * x.rank)
        pad[2 * x.rank - 2] = size - n
        x = node(ms.PadOp, x, pad=pad)
    node.check_table(size, x.shape[-1], size, 2)
    cosine, sine = _fourier(size, inverse)
    bins = size // 2 + 1 if onesided and not inverse else size
    dtype = numpy_dtype(x.dtype)
    # Re = c re - s im, Im = s re + c im, as one product over (place, part).
    matrix = np.zeros((size, x.shape[-1], bins, 2))
    matrix[:, 0, :, 0], matrix[:, 0, :, 1] = cosine[:, :bins], sine[:, :bins]
    if x.shape[-1] == 2:
        matrix[:, 1, :, 0], matrix[:, 1, :, 1] = -sine[:, :bins], cosine[:, :bins]
    if real_output:
        matrix = matrix[..., :1]
    lead, parts = x.shape[:-2], matrix.shape[-1]
    flat = node.reshape(x, (math.prod(lead), size * x.shape[-1]))
    table = matrix.reshape(size * x.shape[-1], bins * parts).astype(dtype)
    return node.reshape(product(node, flat, node.constant(table)), (*lead, bins, parts))


_MEL_STEPS = 64
"""What an element of a mel matrix costs at import, in numbers of a table: they are made one by one."""


@importer("DFT")
def _dft(node: Node) -> OnnxValue:
    """`[..., 1 or 2]`: real or complex. The axis is an input since opset 20."""
    x = node[0]
    axis = node.known_int(2, "axis") if node.has(2) else node.int_("axis", 1 if node.opset < 20 else -2)
    axis = node.axis(axis, x.rank)
    inverse, onesided = node.flag("inverse"), node.flag("onesided")
    shape = node.shape_of(x)
    size = node.known_int(1, "dft_length") if node.has(1) else shape[axis]
    if inverse and onesided:
        size = size if node.has(1) else 2 * (shape[axis] - 1)
        return _inverse_real(node, x, axis, size)
    order = [a for a in range(x.rank - 1) if a != axis] + [axis, x.rank - 1]
    y = fourier(node, transposed(node, x, order), size, inverse, onesided)
    return transposed(node, y, [order.index(a) for a in range(x.rank)])


def _inverse_real(node: Node, x: OnnxValue, axis: int, size: int) -> OnnxValue:
    """Half of a spectrum whose other half is its mirror, back to real numbers."""
    order = [a for a in range(x.rank - 1) if a != axis] + [axis, x.rank - 1]
    half = transposed(node, x, order)
    bins = size // 2 + 1
    half = cut(node, half, {half.rank - 2: (0, min(bins, half.shape[-2]), 1)})
    tail = cut(node, half, {half.rank - 2: (1, size - bins + 1, 1)})
    sign = node.cast(node.constant(np.array([1.0, -1.0], np.float32)), x.dtype)
    mirrored = node(ms.MulOp, node(ms.ReverseOp, tail, axis=[tail.rank - 2]), sign)
    whole = node(ms.ConcatOp, half, mirrored, axis=half.rank - 2)
    y = fourier(node, whole, size, True, False, real_output=True)
    return transposed(node, y, [order.index(a) for a in range(x.rank)])


@importer("STFT")
def _stft(node: Node) -> OnnxValue:
    """Frames of the signal, each times the window, transformed."""
    x, step = node[0], node.known_int(1, "frame_step")
    window = node.get(2)
    length = node.known_int(3, "frame_length") if node.has(3) else node.size_of(window or x, 0)
    signal = x if x.rank == 3 else node(ms.ExpandDimsOp, x, axis=[2])
    batch, samples, parts = node.shape_of(signal)
    frames = (samples - length) // step + 1
    node.check_table(frames, length)
    places = np.arange(frames)[:, None] * step + np.arange(length)[None, :]
    taken = node(ms.GatherOp, signal, node.constant(places), axis=1)
    if window is not None:
        taken = node(ms.MulOp, taken, node.reshape(window, (1, 1, length, 1)))
    rows = node.reshape(taken, (batch, frames, length, parts))
    return fourier(node, rows, length, False, node.flag("onesided", True))


@importer("MelWeightMatrix")
def _mel(node: Node) -> OnnxValue:
    """Triangles that are even on the mel scale, over the bins of a spectrum; its numbers must be known."""
    bins, length, rate = (node.known_int(i, what) for i, what in enumerate(("bins", "length", "sample rate")))
    low, high = (float(node.known(i, "frequency").reshape(())) for i in (3, 4))
    dtype = dtype_of(node.int_("output_datatype", 1), node.label)
    node.check_table(length // 2 + 1, bins, _MEL_STEPS)
    # In steps as ONNX takes them: an end excluded, and places rounded down.
    low_mel, high_mel = 2595 * math.log10(1 + low / 700), 2595 * math.log10(1 + high / 700)
    mels = np.arange(bins + 2) * ((high_mel - low_mel) / (bins + 2)) + low_mel
    places = (((length + 1) * (700 * (np.power(10, mels / 2595) - 1))) // rate).astype(int)
    matrix = np.zeros((length // 2 + 1, bins))
    for i in range(bins):
        lower, centre, upper = places[i], places[i + 1], places[i + 2]
        if centre == lower:
            matrix[centre, i] = 1
        else:
            for j in range(lower, centre + 1):
                matrix[j, i] = (j - lower) / (centre - lower)
        for j in range(centre, upper):
            matrix[j, i] = (upper - j) / (upper - centre)
    return node.constant(matrix.astype(numpy_dtype(dtype)))
