"""Convolution and transposed convolution, of one, two and three spatial axes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from msc import ops
from msc.frontend import dtypes
from msc.frontend.dtypes import DTypeLike
from msc.frontend.initializers import Init
from msc.frontend.tensor import Tensor
from msc.nn.arguments import boolean, groups, positive, word
from msc.nn.cell import Cell
from msc.nn.parameters import parameter
from msc.ops.windows import Sizes, convolution, in_format, pads, spread, transposed_convolution

__all__ = ["Conv1d", "Conv1dTranspose", "Conv2d", "Conv2dTranspose", "Conv3d", "Conv3dTranspose"]

PAD_MODES = ("same", "valid", "pad")


class Convolution(Cell):
    """Base: the arguments and parameters that all have. Weight and bias begin uniform within 1 / sqrt(fan in)."""

    SPATIAL: ClassVar[int]
    ORDER: ClassVar[str] = (
        "in_channels, out_channels, kernel_size, stride, pad_mode, padding, dilation, group, has_bias, weight_init, "
        "bias_init, data_format"
    )

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
        dtype: DTypeLike = dtypes.float32,
    ) -> None:
        super().__init__()
        name, count = type(self).__name__, self.SPATIAL
        positive(name, in_channels=in_channels, out_channels=out_channels)
        boolean(name, "has_bias", has_bias, self.ORDER)
        groups(name, group, in_channels, out_channels)
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = spread(kernel_size, count, "kernel_size")
        self.stride = spread(stride, count, "stride")
        self.pad_mode = word(name, "pad_mode", pad_mode, PAD_MODES, self.ORDER)
        pads(padding, count)
        self.padding = padding
        self.dilation = spread(dilation, count, "dilation")
        for what, sizes in (("kernel_size", self.kernel_size), ("stride", self.stride), ("dilation", self.dilation)):
            for size in sizes:
                positive(name, **{what: size})
        self.group = group
        self.has_bias = has_bias
        self.weight_init = weight_init
        self.bias_init = bias_init
        shape = self._weight_shape()
        fan_in = math.prod(shape[1:])
        self.weight = parameter(weight_init, shape, "weight", dtype, fan_in=fan_in)
        self.bias = parameter(bias_init, (out_channels,), "bias", dtype, fan_in=fan_in) if has_bias else None

    def _weight_shape(self) -> tuple[int, ...]:
        return (self.out_channels, self.in_channels // self.group, *self.kernel_size)

    def construct(self, x: Tensor) -> Tensor:
        return self.convolved(x, self.weight, self.bias)

    def convolved(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """The convolution of x with a weight and a bias that need not be the layer's own."""
        return convolution(
            x, weight, bias, self.stride, self.pad_mode, self.padding, self.dilation, self.group, self.SPATIAL
        )

    def extend_repr(self) -> str:
        size, stride, dilation = (
            v[0] if self.SPATIAL == 1 else v for v in (self.kernel_size, self.stride, self.dilation)
        )
        return (
            f"input_channels={self.in_channels}, output_channels={self.out_channels}, kernel_size={size}, "
            f"stride={stride}, pad_mode={self.pad_mode}, padding={self.padding}, dilation={dilation}, "
            f"group={self.group}, has_bias={self.has_bias}, weight_init={self.weight_init}, bias_init={self.bias_init}"
        )


class Conv1d(Convolution):
    """Convolution of `[n, in, w]` -> `[n, out, w']`, weight `[out, in / group, kw]`."""

    SPATIAL: ClassVar[int] = 1


class Conv2d(Convolution):
    """Convolution of images `[n, in, h, w]` -> `[n, out, h', w']`, weight `[out, in / group, kh, kw]`."""

    SPATIAL: ClassVar[int] = 2
    MEMBERS: ClassVar[Mapping[str, Callable[[Any], Any]]] = {
        "bias_add": lambda self: ops.BiasAdd(self.data_format),
        "conv2d": lambda self: ops.Conv2D(
            self.out_channels, self.kernel_size, 1, self.pad_mode, self.padding, self.stride, self.dilation, self.group,
            self.data_format,
        ),
    }  # fmt: skip

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
        super().__init__(
            in_channels, out_channels, kernel_size, stride, pad_mode, padding, dilation, group, has_bias,
            weight_init, bias_init, dtype,
        )  # fmt: skip
        self.data_format = word("Conv2d", "data_format", data_format, ("nchw", "nhwc"), self.ORDER).upper()

    def construct(self, x: Tensor) -> Tensor:
        return in_format(self.data_format, super().construct, x)

    def extend_repr(self) -> str:
        return f"{super().extend_repr()}, format={self.data_format}"


class Conv3d(Convolution):
    """Convolution of volumes `[n, in, d, h, w]`, weight `[out, in / group, kd, kh, kw]`."""

    SPATIAL: ClassVar[int] = 3

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
        data_format: str = "NCDHW",
        dtype: DTypeLike = dtypes.float32,
    ) -> None:
        super().__init__(
            in_channels, out_channels, kernel_size, stride, pad_mode, padding, dilation, group, has_bias,
            weight_init, bias_init, dtype,
        )  # fmt: skip
        word("Conv3d", "data_format", data_format, ("ncdhw",), self.ORDER)


class TransposedConvolution(Convolution):
    """Base of transposed convolution: weight `[in, out / group, kernel...]`."""

    output_padding: Sizes = 0

    def _weight_shape(self) -> tuple[int, ...]:
        return (self.in_channels, self.out_channels // self.group, *self.kernel_size)

    def construct(self, x: Tensor) -> Tensor:
        return transposed_convolution(
            x,
            self.weight,
            self.bias,
            self.stride,
            self.pad_mode,
            self.padding,
            self.output_padding,
            self.dilation,
            self.group,
            self.SPATIAL,
        )


class Conv1dTranspose(TransposedConvolution):
    """Transposed convolution of `[n, in, w]`."""

    SPATIAL: ClassVar[int] = 1


class Conv2dTranspose(TransposedConvolution):
    """Transposed convolution of images `[n, in, h, w]`."""

    SPATIAL: ClassVar[int] = 2

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        pad_mode: str = "same",
        padding: Sizes = 0,
        output_padding: Sizes = 0,
        dilation: Sizes = 1,
        group: int = 1,
        has_bias: bool = False,
        weight_init: Init = None,
        bias_init: Init = None,
        dtype: DTypeLike = dtypes.float32,
    ) -> None:
        super().__init__(
            in_channels, out_channels, kernel_size, stride, pad_mode, padding, dilation, group, has_bias,
            weight_init, bias_init, dtype,
        )  # fmt: skip
        self.output_padding = output_padding


class Conv3dTranspose(TransposedConvolution):
    """Transposed convolution of volumes `[n, in, d, h, w]`."""

    SPATIAL: ClassVar[int] = 3

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
        output_padding: Sizes = 0,
        has_bias: bool = False,
        weight_init: Init = None,
        bias_init: Init = None,
        data_format: str = "NCDHW",
        dtype: DTypeLike = dtypes.float32,
    ) -> None:
        super().__init__(
            in_channels, out_channels, kernel_size, stride, pad_mode, padding, dilation, group, has_bias,
            weight_init, bias_init, dtype,
        )  # fmt: skip
        word("Conv3dTranspose", "data_format", data_format, ("ncdhw",), self.ORDER)
        self.output_padding = output_padding
