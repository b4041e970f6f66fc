"""Weights of dense layers in few bits, in blocks along their inputs that share a scale: rounded to nearest."""

from __future__ import annotations

import numpy as np

from msc import nn
from msc.dialects.arrays import Array
from msc.nn.packed import PackedDense


def rounded_to_nearest(weight: Array, bits: int, block: int) -> tuple[Array, Array]:
    """Codes `[out, in]` and scales `[out, in / block]` of a weight; half of the codes are below zero.

    The number of the greatest magnitude in a block is the lowest code: exact, as in llama.cpp's Q4_0.
    """
    out, inputs = weight.shape
    apart = weight.astype(np.float32).reshape(out, inputs // block, block)
    places = np.abs(apart).argmax(2)[:, :, None]
    middle = 1 << (bits - 1)
    scale = np.take_along_axis(apart, places, 2) / np.float32(-middle)
    ratio = np.divide(apart, scale, out=np.zeros_like(apart), where=scale != 0)
    codes = np.clip(np.round(ratio) + middle, 0, 2 * middle - 1).astype(np.uint8)
    return codes.reshape(out, inputs), scale[:, :, 0]


def pack_dense_layers(net: nn.Cell, bits: int = 4, block: int = 32) -> int:
    """Put a `PackedDense` in the place of each dense layer whose inputs are whole blocks; how many there were.

    Layers with an activation stay what they are.
    """
    count = 0
    for name, cell in list(net.name_cells().items()):
        if type(cell) is nn.Dense and cell.activation is None and cell.in_channels % block == 0:
            codes, scale = rounded_to_nearest(cell.weight.asnumpy(), bits, block)
            bias = None if cell.bias is None else cell.bias.asnumpy()
            setattr(net, name, PackedDense(codes, scale, None, bits, block, bias))
            count += 1
        else:
            count += pack_dense_layers(cell, bits, block)
    return count
