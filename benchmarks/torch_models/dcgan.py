"""The generator of a DCGAN (Radford et al. 2015): transposed convolutions, batch norm, tanh."""

from __future__ import annotations

import torch
from torch import nn


class Generator(nn.Module):
    """Noise (N, noise, 1, 1) to images (N, channels, 64, 64) in (-1, 1) with the default number of steps."""

    def __init__(self, noise: int = 100, width: int = 64, steps: int = 3, channels: int = 3) -> None:
        super().__init__()
        wide = width << steps
        layers: list[nn.Module] = [
            nn.ConvTranspose2d(noise, wide, 4, 1, 0, bias=False),
            nn.BatchNorm2d(wide),
            nn.ReLU(),
        ]
        for _ in range(steps):
            layers += [nn.ConvTranspose2d(wide, wide // 2, 4, 2, 1, bias=False), nn.BatchNorm2d(wide // 2), nn.ReLU()]
            wide //= 2
        self.layers = nn.Sequential(*layers, nn.ConvTranspose2d(wide, channels, 4, 2, 1, bias=False), nn.Tanh())

    def forward(self, noise: torch.Tensor) -> torch.Tensor:
        return self.layers(noise)
