"""Pooling, of one, two and three spatial axes, and to a size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from msc import ops
from msc.frontend.errors import ApiValueError
from msc.frontend.tensor import Tensor
from msc.nn.arguments import positive, word
from msc.nn.cell import Cell
from msc.ops.windows import Sizes, adaptive_pool, in_format, pooling, spread

__all__ = [
    "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d", "AvgPool1d", "AvgPool2d", "AvgPool3d", "LPPool1d", "LPPool2d", "MaxPool1d", "MaxPool2d",
    "MaxPool3d",
]  # fmt: skip


class Pooling(Cell):
    """Base: windows of `kernel_size`, one every `stride`; padding never counts in "same" and "valid"."""

    SPATIAL: ClassVar[int]
    KIND: ClassVar[str]

    def __init__(
        self,
        kernel_size: Sizes = 1,
        stride: Sizes = 1,
        pad_mode: str = "valid",
        padding: Sizes = 0,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        name = type(self).__name__
        for what, sizes in (("kernel_size", kernel_size), ("stride", stride)):
            for size in spread(sizes, self.SPATIAL, what):
                positive(name, **{what: size})
        self.kernel_size = kernel_size
        self.stride = stride
        self.pad_mode = word(name, "pad_mode", pad_mode, ("valid", "same", "pad"), "kernel_size, stride, pad_mode")
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad: bool | None = None
        self.dilation: Sizes = 1

    def construct(self, x: Tensor) -> Tensor:
        return pooling(
            self.KIND,
            x,
            self.kernel_size,
            self.stride,
            self.pad_mode,
            self.padding,
            self.SPATIAL,
            ceil_mode=self.ceil_mode,
            dilation=self.dilation,
            count_include_pad=self.count_include_pad,
        )

    def extend_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, pad_mode={self.pad_mode.upper()}"


class _MaxPooling(Pooling):
    """Base of pooling by the largest element."""

    KIND: ClassVar[str] = "max"

    def __init__(
        self,
        kernel_size: Sizes = 1,
        stride: Sizes = 1,
        pad_mode: str = "valid",
        padding: Sizes = 0,
        dilation: Sizes = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__(kernel_size, stride, pad_mode, padding, ceil_mode)
        if return_indices:
            raise ApiValueError(
                "MSC0824", f"{type(self).__name__}: where the largest elements stand is not computed (return_indices)"
            )
        self.dilation = dilation


class MaxPool1d(_MaxPooling):
    """The largest element of each window of `[n, c, w]`."""

    SPATIAL: ClassVar[int] = 1


class MaxPool2d(_MaxPooling):
    """The largest element of each window of images `[n, c, h, w]`, or `[n, h, w, c]`."""

    SPATIAL: ClassVar[int] = 2

    def __init__(
        self,
        kernel_size: Sizes = 1,
        stride: Sizes = 1,
        pad_mode: str = "valid",
        padding: Sizes = 0,
        dilation: Sizes = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
        data_format: str = "NCHW",
    ) -> None:
        super().__init__(kernel_size, stride, pad_mode, padding, dilation, return_indices, ceil_mode)
        self.data_format = word("MaxPool2d", "data_format", data_format, ("nchw", "nhwc"), "..., data_format").upper()

    def construct(self, x: Tensor) -> Tensor:
        return in_format(self.data_format, super().construct, x)


class MaxPool3d(_MaxPooling):
    """The largest element of each window of volumes `[n, c, d, h, w]`."""

    SPATIAL: ClassVar[int] = 3


class _AvgPooling(Pooling):
    """Base of pooling by the mean."""

    KIND: ClassVar[str] = "avg"

    def __init__(
        self,
        kernel_size: Sizes = 1,
        stride: Sizes = 1,
        pad_mode: str = "valid",
        padding: Sizes = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__(kernel_size, stride, pad_mode, padding, ceil_mode)
        self.count_include_pad = count_include_pad and self.pad_mode == "pad"


class AvgPool1d(_AvgPooling):
    """The mean of each window of `[n, c, w]`."""

    SPATIAL: ClassVar[int] = 1


class AvgPool2d(_AvgPooling):
    """The mean of each window of images `[n, c, h, w]`, or `[n, h, w, c]`."""

    SPATIAL: ClassVar[int] = 2

    def __init__(
        self,
        kernel_size: Sizes = 1,
        stride: Sizes = 1,
        pad_mode: str = "valid",
        padding: Sizes = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
        data_format: str = "NCHW",
    ) -> None:
        super().__init__(kernel_size, stride, pad_mode, padding, ceil_mode, count_include_pad)
        if divisor_override is not None:
            raise ApiValueError("MSC0824", "AvgPool2d: divisor_override is not there; use ops.avg_pool2d")
        self.data_format = word("AvgPool2d", "data_format", data_format, ("nchw", "nhwc"), "..., data_format").upper()

    def construct(self, x: Tensor) -> Tensor:
        return in_format(self.data_format, super().construct, x)


class AvgPool3d(_AvgPooling):
    """The mean of each window of volumes `[n, c, d, h, w]`."""

    SPATIAL: ClassVar[int] = 3


class _Adaptive(Cell):
    """Base: pooling to `output_size`; place i of an axis sees elements from floor(i n / m) to ceil((i + 1) n / m)."""

    SPATIAL: ClassVar[int]
    KIND: ClassVar[str] = "avg"

    def __init__(self, output_size: int | Sequence[int | None]) -> None:
        super().__init__()
        self.output_size = output_size

    def construct(self, x: Tensor) -> Tensor:
        return adaptive_pool(self.KIND, x, self.output_size, self.SPATIAL)

    def extend_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_Adaptive):
    """The means of parts of the last axis."""

    SPATIAL: ClassVar[int] = 1


class AdaptiveAvgPool2d(_Adaptive):
    """The means of parts of images."""

    SPATIAL: ClassVar[int] = 2


class AdaptiveAvgPool3d(_Adaptive):
    """The means of parts of volumes."""

    SPATIAL: ClassVar[int] = 3


class AdaptiveMaxPool1d(AdaptiveAvgPool1d):
    """The largest elements of parts of the last axis."""

    KIND: ClassVar[str] = "max"


class AdaptiveMaxPool2d(AdaptiveAvgPool2d):
    """The largest elements of parts of images."""

    KIND: ClassVar[str] = "max"


class AdaptiveMaxPool3d(AdaptiveAvgPool3d):
    """The largest elements of parts of volumes."""

    KIND: ClassVar[str] = "max"


class LPPool1d(Cell):
    """The norms of windows along the last axis, of an order: the roots of the sums of powers."""

    FUNCTION: ClassVar[Any] = staticmethod(ops.lp_pool1d)

    def __init__(self, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> None:
        super().__init__()
        self.norm_type, self.kernel_size, self.stride, self.ceil_mode = norm_type, kernel_size, stride, ceil_mode

    def construct(self, x: Tensor) -> Tensor:
        return self.FUNCTION(x, self.norm_type, self.kernel_size, self.stride, self.ceil_mode)


class LPPool2d(LPPool1d):
    """The norms of windows of images, of an order."""

    FUNCTION: ClassVar[Any] = staticmethod(ops.lp_pool2d)
