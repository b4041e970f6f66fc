"""Residual networks with bottleneck blocks (He et al. 2015, "Deep Residual Learning"), stride on the 3x3 (v1.5)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

EXPANSION = 4


def _conv_norm(inputs: int, outputs: int, kernel: int, stride: int = 1) -> nn.Sequential:
    conv = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(outputs))


class Bottleneck(nn.Module):
    """1x1 down, 3x3, 1x1 up, and the identity or a projection beside them."""

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        outputs = width * EXPANSION
        self.reduce = _conv_norm(inputs, width, 1)
        self.spatial = _conv_norm(width, width, 3, stride)
        self.expand = _conv_norm(width, outputs, 1)
        same = inputs == outputs and stride == 1
        self.shortcut = nn.Identity() if same else _conv_norm(inputs, outputs, 1, stride)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        inner = torch.relu(self.spatial(torch.relu(self.reduce(x))))
        return torch.relu(self.expand(inner) + self.shortcut(x))


class ResNet(nn.Module):
    """Images (N, 3, H, W) to logits (N, classes). ResNet-50 is blocks (3, 4, 6, 3) of width 64."""

    def __init__(self, blocks: Sequence[int] = (3, 4, 6, 3), width: int = 64, classes: int = 1000) -> None:
        super().__init__()
        self.stem = nn.Sequential(_conv_norm(3, width, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
        stages: list[nn.Module] = []
        channels = width
        for stage, count in enumerate(blocks):
            for number in range(count):
                stride = 2 if stage > 0 and number == 0 else 1
                stages.append(Bottleneck(channels, width << stage, stride))
                channels = (width << stage) * EXPANSION
        self.stages = nn.Sequential(*stages)
        self.head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes))

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return self.head(self.stages(self.stem(image)))
