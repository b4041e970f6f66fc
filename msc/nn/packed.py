"""A dense layer whose weight is stored in a few bits, in blocks that share a scale."""

from __future__ import annotations

import numpy as np

from msc import ops
from msc.dialects.arrays import Array
from msc.dialects.packed_weights import in_panels, panel_width, values_in_panels
from msc.frontend.dispatch import apply
from msc.frontend.errors import ApiValueError
from msc.frontend.parameter import Parameter
from msc.frontend.tensor import Tensor
from msc.nn.cell import Cell

__all__ = ["PackedDense"]


class PackedDense(Cell):
    """`[..., in]` -> `[..., out]` by weights `(code - zero) * scale` of 2, 4 or 8 `bits`, that stay packed.

    `codes` are `[out, in]` of uint8, `scale` floats `[out, in / block_size]`, and so are zero points, of uint8 or the
    scales' type; without them half of the codes are below zero. With `rounds` each block of x is rounded to 8 bits, and
    products are of integers where the machine sums these faster. No gradient goes to the weights, nor through them.
    """

    def __init__(
        self,
        codes: Array,
        scale: Array,
        zero: Array | None = None,
        bits: int = 4,
        block_size: int = 32,
        bias: Array | None = None,
        order: Array | None = None,
        rounds: bool = False,
    ) -> None:
        super().__init__()
        out, inputs = codes.shape
        if bits not in (2, 4, 8) or inputs % block_size or block_size % (8 // bits):
            message = f"PackedDense: {inputs} inputs are no blocks of {block_size} codes of {bits} bits"
            raise ApiValueError("MSC0824", message)
        self.in_channels, self.out_channels, self.bits, self.block_size = inputs, out, bits, block_size
        self.rounds = rounds
        self.codes = _stored(in_panels(codes, bits, block_size), "codes")
        self.scale = _stored(values_in_panels(scale), "scale")
        self.zero = None if zero is None else _stored(values_in_panels(zero), "zero")
        self.bias = None if bias is None else _stored(np.asarray(bias, np.float32), "bias")
        self.order = None if order is None else Tensor(np.asarray(order, np.int32))

    def construct(self, x: Tensor) -> Tensor:
        shape = x.shape[:-1]
        if self.order is not None:
            x = ops.gather(x, self.order, -1)
        rows = ops.reshape(x, (-1, self.in_channels))
        y = apply("packed_matmul", rows, self.codes, self.scale, self.zero, bits=self.bits, rounds=self.rounds)
        if self.out_channels % panel_width(self.out_channels):
            y = y[:, : self.out_channels]
        y = ops.reshape(y, (*shape, self.out_channels))
        return y if self.bias is None else y + self.bias

    def extend_repr(self) -> str:
        return f"{self.in_channels}, {self.out_channels}, bits={self.bits}, block_size={self.block_size}"


def _stored(array: Array, name: str) -> Parameter:
    return Parameter(Tensor(array), name=name, requires_grad=False)
