"""ConvNeXt (Liu et al. 2022): depthwise 7x7 convolutions and channels-last feed-forward layers."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn


class ChannelNorm(nn.LayerNorm):
    """A layer norm over the channels of (N, C, H, W)."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return super().forward(input.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class Block(nn.Module):
    """A depthwise convolution, a norm and a feed-forward layer, scaled and added."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.depthwise = nn.Conv2d(width, width, 7, padding=3, groups=width)
        norm = nn.LayerNorm(width, 1e-6)
        self.layers = nn.Sequential(norm, nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.scale = nn.Parameter(torch.full((width, 1, 1), 0.1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        inner = self.layers(self.depthwise(x).permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
        return x + self.scale * inner


def convnext(blocks: Sequence[int] = (3, 3, 9, 3), widths: Sequence[int] = (96, 192, 384, 768)) -> nn.Module:
    """The defaults are ConvNeXt-T."""
    layers: list[nn.Module] = [nn.Conv2d(3, widths[0], 4, 4), ChannelNorm(widths[0], 1e-6)]
    for stage, (count, width) in enumerate(zip(blocks, widths, strict=True)):
        if stage:
            layers += [ChannelNorm(widths[stage - 1], 1e-6), nn.Conv2d(widths[stage - 1], width, 2, 2)]
        layers += [Block(width) for _ in range(count)]
    norm = ChannelNorm(widths[-1], 1e-6)
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), norm, nn.Flatten(), nn.Linear(widths[-1], 1000))
