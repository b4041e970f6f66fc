"""MobileNetV2 (Sandler et al. 2018): inverted residuals with linear bottlenecks."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

LAYERS = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
"""Expansion, channels, blocks, stride of the first block: the table of the paper."""


def _conv(inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1) -> list[nn.Module]:
    conv = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False)
    return [conv, nn.BatchNorm2d(outputs)]


class InvertedResidual(nn.Module):
    """1x1 up, 3x3 depthwise, linear 1x1 down; added to its input where the shapes allow."""

    def __init__(self, inputs: int, outputs: int, stride: int, expansion: int) -> None:
        super().__init__()
        hidden = inputs * expansion
        grow = [*_conv(inputs, hidden, 1), nn.ReLU6()] if expansion > 1 else []
        depthwise = [*_conv(hidden, hidden, 3, stride, groups=hidden), nn.ReLU6()]
        self.layers = nn.Sequential(*grow, *depthwise, *_conv(hidden, outputs, 1))
        self.residual = stride == 1 and inputs == outputs

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.layers(x) if self.residual else self.layers(x)


class MobileNetV2(nn.Module):
    """Images (N, 3, H, W) to logits (N, classes)."""

    def __init__(
        self,
        layers: Sequence[tuple[int, int, int, int]] = LAYERS,
        stem: int = 32,
        last: int = 1280,
        classes: int = 1000,
    ) -> None:
        super().__init__()
        features: list[nn.Module] = [*_conv(3, stem, 3, 2), nn.ReLU6()]
        channels = stem
        for expansion, outputs, count, stride in layers:
            for number in range(count):
                features.append(InvertedResidual(channels, outputs, stride if number == 0 else 1, expansion))
                channels = outputs
        self.features = nn.Sequential(*features, *_conv(channels, last, 1), nn.ReLU6())
        self.classifier = nn.Sequential(nn.Dropout(0.2), nn.Linear(last, classes))

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return self.classifier(self.features(image).mean([2, 3]))
