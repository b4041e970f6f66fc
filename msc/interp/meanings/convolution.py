"""Convolutions of any number of spatial dimensions: windows unfolded to a matrix, then one product a batch element."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from msc.dialects.arrays import Array, is_integer_array, tensor_dtype
from msc.dialects.ms.base import MsOp
from msc.interp.meanings.windows import Pads, Windows, padded, windows_of
from msc.interp.registry import meaning


@meaning("conv1d", "conv2d", "conv3d")
def _convolution(op: MsOp, x: Array, weight: Array, bias: Array | None = None) -> Array:
    """X [N, C, ...], weight [O, C / group, ...], bias [O] (cross-correlation, as in every framework)."""
    windows = windows_of(op, weight.shape[2:])
    wide = tensor_dtype(op.result_tensor()) if is_integer_array(x) else x.dtype
    image = padded(x.astype(wide, copy=False), windows.pads(op, x.shape[2:]))
    y = convolve(image, weight.astype(wide, copy=False), windows, op.int_("group"))
    return y if bias is None else y + _along_channels(bias, y.ndim)


def convolve(image: Array, weight: Array, windows: Windows, group: int) -> Array:
    """Valid convolution; one batch element at a time bounds the memory of the unfolded matrix."""
    counts = windows.counts(image.shape[2:])
    rows = weight.reshape(group, weight.shape[0] // group, math.prod(weight.shape[1:]))
    y = np.empty((image.shape[0], weight.shape[0], *counts), image.dtype)
    for n, element in enumerate(image):
        columns = _unfold(element, windows, counts)
        y[n] = np.matmul(rows, columns.reshape(group, rows.shape[2], math.prod(counts))).reshape(y.shape[1:])
    return y


def _unfold(element: Array, windows: Windows, counts: Sequence[int]) -> Array:
    """The matrix [C, kernel..., windows...] of one batch element [C, ...]; a pointwise kernel needs no copy."""
    columns = np.empty((element.shape[0], *windows.kernel, *counts), element.dtype)
    for place, view in windows.offsets(element, counts):
        columns[(slice(None), *place)] = view
    return columns


@meaning("conv1d_transpose", "conv2d_transpose", "conv3d_transpose")
def _transposed(op: MsOp, x: Array, weight: Array, bias: Array | None = None) -> Array:
    """The gradient of convolution to its input: x [N, C, ...], weight [C, O / group, ...]; overlaps add up."""
    windows = windows_of(op, weight.shape[2:])
    group = op.int_("group")
    reach = [(n - 1) * s + e for n, s, e in zip(x.shape[2:], windows.stride, windows.extents(), strict=True)]
    margins = _margins(op, windows)
    sizes = [r + max(0, -end) for r, (_, end) in zip(reach, margins, strict=True)]
    y = np.zeros((x.shape[0], group * weight.shape[1], *sizes), x.dtype)
    _scatter(y, x, weight, windows, group)
    inside = tuple(slice(begin, n - max(0, end)) for n, (begin, end) in zip(sizes, margins, strict=True))
    y = y[(slice(None), slice(None), *inside)]
    return y if bias is None else y + _along_channels(bias, y.ndim)


@meaning("subpixel_conv")
def _subpixel(op: MsOp, x: Array, weight: Array) -> Array:
    """X [N, C, ...], weight [finer..., O, C / group, kernel...]: a convolution for each place, side by side."""
    axes = x.ndim - 2
    finer, kernel = weight.shape[:axes], weight.shape[axes + 2 :]
    windows, y = Windows(kernel, (1,) * axes, (1,) * axes), np.empty(op.result_shape(), x.dtype)
    for place in np.ndindex(*finer):
        steps = zip(place, op.ints("begin"), finer, y.shape[2::2], kernel, strict=True)
        firsts = [((p + begin) // f, n + k - 1) for p, begin, f, n, k in steps]
        read = tuple(slice(first, first + count) for first, count in firsts)
        found = convolve(x[(slice(None), slice(None), *read)], weight[place], windows, op.int_("group"))
        y[(slice(None), slice(None), *(index for p in place for index in (slice(None), p)))] = found
    return y


def _margins(op: MsOp, windows: Windows) -> Pads:
    """What is cut off before and after each spatial dimension; less than 0 after it: what is added."""
    if op.word("pad_mode") == "same":
        spare = [e - s for e, s in zip(windows.extents(), windows.stride, strict=True)]
        return tuple((max(n, 0) // 2, n - max(n, 0) // 2) for n in spare)
    pad, more = op.ints("pad"), op.ints("output_padding")
    return tuple((begin, end - extra) for begin, end, extra in zip(pad[0::2], pad[1::2], more, strict=True))


def _scatter(y: Array, x: Array, weight: Array, windows: Windows, group: int) -> None:
    positions = x.shape[2:]
    data = x.reshape(x.shape[0], group, x.shape[1] // group, math.prod(positions))
    taps = weight.reshape(group, weight.shape[0] // group, *weight.shape[1:])
    for place, view in windows.offsets(y, positions):
        tap = taps[(..., *place)]
        view += np.matmul(np.swapaxes(tap, 1, 2), data).reshape(view.shape)


def _along_channels(values: Array, rank: int) -> Array:
    return values.reshape((-1,) + (1,) * (rank - 2))
