"""Convolution layers."""

from __future__ import annotations

import math

from msc import ops
from msc.frontend import dtypes
from msc.frontend.dtypes import DTypeLike
from msc.frontend.initializers import Init
from msc.frontend.tensor import Tensor
from msc.nn.cell import Cell
from msc.nn.parameters import parameter
from msc.ops.windows import Sizes, spread


class Conv2d(Cell):
    """Convolution of images `[n, in, h, w]` -> `[n, out, h', w']`, weight `[out, in / group, kh, kw]`."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        pad_mode: str = "same",
        padding: Sizes = 0,
        dilation: Sizes = 1,
        group: int = 1,
        has_bias: bool = False,
        weight_init: Init = None,
        bias_init: Init = None,
        data_format: str = "NCHW",
        dtype: DTypeLike = dtypes.float32,
    ) -> None:
        super().__init__()
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = spread(kernel_size, 2, "kernel_size")
        self.stride = spread(stride, 2, "stride")
        self.pad_mode = pad_mode
        self.padding = padding
        self.dilation = spread(dilation, 2, "dilation")
        self.group = group
        self.has_bias = has_bias
        self.data_format = data_format
        self.weight_init = weight_init
        self.bias_init = bias_init
        shape = (out_channels, in_channels // group, *self.kernel_size)
        fan_in = math.prod(shape[1:])
        self.weight = parameter(weight_init, shape, "weight", dtype, fan_in=fan_in)
        self.bias = parameter(bias_init, (out_channels,), "bias", dtype, fan_in=fan_in) if has_bias else None

    def construct(self, x: Tensor) -> Tensor:
        return ops.conv2d(
            x, self.weight, self.bias, self.stride, self.pad_mode, self.padding, self.dilation, self.group
        )
