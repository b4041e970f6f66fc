"""Residual networks of bottleneck blocks (He et al., 2015): ResNet-50 with blocks 3, 4, 6, 3."""

from __future__ import annotations

from collections.abc import Sequence

from msc import nn, ops
from msc.ops import Tensor

EXPANSION = 4
"""How many channels a block gives for each that it computes with."""


class Bottleneck(nn.Cell):
    """1x1, 3x3 (with the stride) and 1x1 convolutions, each normalised, beside a shortcut."""

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, width, 1)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride=stride, pad_mode="pad", padding=1)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, EXPANSION * width, 1)
        self.bn3 = nn.BatchNorm2d(EXPANSION * width)
        self.relu = nn.ReLU()
        self.has_projection = stride != 1 or inputs != EXPANSION * width
        if self.has_projection:
            self.down = nn.Conv2d(inputs, EXPANSION * width, 1, stride=stride, pad_mode="valid")
            self.down_bn = nn.BatchNorm2d(EXPANSION * width)

    def construct(self, x: Tensor) -> Tensor:
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.relu(self.bn2(self.conv2(y)))
        y = self.bn3(self.conv3(y))
        shortcut = self.down_bn(self.down(x)) if self.has_projection else x
        return self.relu(y + shortcut)


class ResNet(nn.Cell):
    """Images `[n, 3, h, w]` to scores `[n, classes]`; `blocks` says how many a stage has, `width` that of the first."""

    def __init__(self, blocks: Sequence[int], classes: int = 1000, width: int = 64) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 7, stride=2, pad_mode="pad", padding=3)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU()
        self.max_pool = nn.MaxPool2d(3, stride=2, pad_mode="pad", padding=1)
        cells: list[nn.Cell] = []
        inputs = width
        for stage, count in enumerate(blocks):
            for k in range(count):
                cells.append(Bottleneck(inputs, width << stage, 2 if stage and k == 0 else 1))
                inputs = EXPANSION * (width << stage)
        self.layers = nn.SequentialCell(cells)
        self.fc = nn.Dense(inputs, classes)

    def construct(self, x: Tensor) -> Tensor:
        x = self.max_pool(self.relu(self.bn1(self.conv1(x))))
        return self.fc(ops.mean(self.layers(x), (2, 3)))


def resnet50(classes: int = 1000) -> ResNet:
    """ResNet-50: 25.6 million parameters."""
    return ResNet((3, 4, 6, 3), classes)
