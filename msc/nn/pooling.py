"""Pooling layers."""

from __future__ import annotations

from msc.frontend.dispatch import apply
from msc.frontend.tensor import Tensor
from msc.nn.cell import Cell
from msc.ops.windows import Sizes, spread


class MaxPool2d(Cell):
    """The largest element of each window of images `[n, c, h, w]`."""

    def __init__(self, kernel_size: Sizes = 1, stride: Sizes = 1, pad_mode: str = "valid") -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride
        self.pad_mode = pad_mode

    def construct(self, x: Tensor) -> Tensor:
        kernel, stride = spread(self.kernel_size, 2, "kernel_size"), spread(self.stride, 2, "stride")
        return apply("max_pool2d", x, kernel_size=kernel, stride=stride, pad_mode=self.pad_mode.lower())

    def extend_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, pad_mode={self.pad_mode.upper()}"
