"""DenseNet (Huang et al. 2016): each layer reads what all before it in its block made."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

from benchmarks.torch_models.classification.layers import classifier


class DenseLayer(nn.Module):
    """Its input, joined with `growth` new channels: norm, 1x1, norm, 3x3."""

    def __init__(self, inputs: int, growth: int) -> None:
        super().__init__()
        inner = 4 * growth
        down = [nn.BatchNorm2d(inputs), nn.ReLU(), nn.Conv2d(inputs, inner, 1, bias=False)]
        self.layers = nn.Sequential(
            *down, nn.BatchNorm2d(inner), nn.ReLU(), nn.Conv2d(inner, growth, 3, padding=1, bias=False)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([x, self.layers(x)], 1)


def densenet(blocks: Sequence[int], growth: int = 32) -> nn.Module:
    """Layers of each block; (6, 12, 24, 16) is DenseNet-121."""
    channels = 2 * growth
    layers: list[nn.Module] = [nn.Conv2d(3, channels, 7, 2, 3, bias=False), nn.BatchNorm2d(channels), nn.ReLU()]
    layers.append(nn.MaxPool2d(3, 2, 1))
    for block, count in enumerate(blocks):
        for _ in range(count):
            layers.append(DenseLayer(channels, growth))
            channels += growth
        layers += [nn.BatchNorm2d(channels), nn.ReLU()]
        if block < len(blocks) - 1:
            layers += [nn.Conv2d(channels, channels // 2, 1, bias=False), nn.AvgPool2d(2)]
            channels //= 2
    return nn.Sequential(*layers, classifier(channels))
