"""A U-Net (Ronneberger et al. 2015) with padded convolutions, batch norm and transposed convolutions going up."""

from __future__ import annotations

import itertools

import torch
from torch import nn


def _double(inputs: int, outputs: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for channels in (inputs, outputs):
        layers += [nn.Conv2d(channels, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()]
    return nn.Sequential(*layers)


class UNet(nn.Module):
    """Images (N, channels, H, W) to class scores of each pixel; H and W divisible by 2 ** depth."""

    def __init__(self, width: int = 32, depth: int = 4, channels: int = 3, classes: int = 2) -> None:
        super().__init__()
        widths = [width << level for level in range(depth + 1)]
        self.first = _double(channels, width)
        pairs = list(itertools.pairwise(widths))
        self.down = nn.ModuleList(nn.Sequential(nn.MaxPool2d(2), _double(a, b)) for a, b in pairs)
        self.grow = nn.ModuleList(nn.ConvTranspose2d(b, a, 2, 2) for a, b in reversed(pairs))
        self.up = nn.ModuleList(_double(b, a) for a, b in reversed(pairs))
        self.head = nn.Conv2d(width, classes, 1)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        x = self.first(image)
        kept: list[torch.Tensor] = []
        for layer in self.down:
            kept.append(x)
            x = layer(x)
        for grow, layer in zip(self.grow, self.up, strict=True):
            x = layer(torch.cat([kept.pop(), grow(x)], 1))
        return self.head(x)
