"""MobileNetV2 (Sandler et al., 2018): inverted residuals with depthwise convolutions."""

from __future__ import annotations

from collections.abc import Sequence

from msc import nn, ops
from msc.ops import Tensor

SETTINGS = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
"""Of each stage: expansion, channels, blocks, and the stride of the first."""


class ConvNormRelu6(nn.SequentialCell):
    """A convolution, normalised, cut at 0 and 6."""

    def __init__(self, inputs: int, outputs: int, kernel: int = 3, stride: int = 1, group: int = 1) -> None:
        padding = (kernel - 1) // 2
        conv = nn.Conv2d(inputs, outputs, kernel, stride=stride, pad_mode="pad", padding=padding, group=group)
        super().__init__(conv, nn.BatchNorm2d(outputs), nn.ReLU6())


class InvertedResidual(nn.Cell):
    """Widen, convolve each channel alone, narrow; beside the input where the shapes agree."""

    def __init__(self, inputs: int, outputs: int, stride: int, expansion: int) -> None:
        super().__init__()
        hidden = inputs * expansion
        cells: list[nn.Cell] = [ConvNormRelu6(inputs, hidden, 1)] if expansion != 1 else []
        cells += [
            ConvNormRelu6(hidden, hidden, stride=stride, group=hidden),
            nn.Conv2d(hidden, outputs, 1),
            nn.BatchNorm2d(outputs),
        ]
        self.conv = nn.SequentialCell(cells)
        self.has_shortcut = stride == 1 and inputs == outputs

    def construct(self, x: Tensor) -> Tensor:
        return x + self.conv(x) if self.has_shortcut else self.conv(x)


class MobileNetV2(nn.Cell):
    """Images `[n, 3, h, w]` to scores `[n, classes]`."""

    def __init__(
        self,
        classes: int = 1000,
        settings: Sequence[tuple[int, int, int, int]] = SETTINGS,
        first: int = 32,
        last: int = 1280,
    ) -> None:
        super().__init__()
        cells: list[nn.Cell] = [ConvNormRelu6(3, first, stride=2)]
        inputs = first
        for expansion, channels, blocks, stride in settings:
            for k in range(blocks):
                cells.append(InvertedResidual(inputs, channels, stride if k == 0 else 1, expansion))
                inputs = channels
        self.features = nn.SequentialCell([*cells, ConvNormRelu6(inputs, last, 1)])
        self.classifier = nn.Dense(last, classes)

    def construct(self, x: Tensor) -> Tensor:
        return self.classifier(ops.mean(self.features(x), (2, 3)))
