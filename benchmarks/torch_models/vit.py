"""A vision transformer (Dosovitskiy et al. 2020): patches, a class token, PyTorch's own pre-norm encoder layers."""

from __future__ import annotations

import torch
from torch import nn


class Block(nn.Module):
    """PyTorch's multi-head attention and a GeLU feed-forward, each of a normalised input and added to it."""

    def __init__(self, size: int, heads: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(size, 1e-6), nn.LayerNorm(size, 1e-6)
        self.attention = nn.MultiheadAttention(size, heads, batch_first=True)
        self.feed_forward = nn.Sequential(nn.Linear(size, 4 * size), nn.GELU(), nn.Linear(4 * size, size))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm1(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        return x + self.feed_forward(self.norm2(x))


class ViT(nn.Module):
    """Square images (N, 3, image, image) to logits. The defaults are ViT-S/16."""

    def __init__(
        self,
        layers: int = 12,
        size: int = 384,
        heads: int = 6,
        image: int = 224,
        patch: int = 16,
        classes: int = 1000,
    ) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, size, patch, patch)
        self.token = nn.Parameter(torch.randn(1, 1, size) * 0.02)
        self.positions = nn.Parameter(torch.randn(1, (image // patch) ** 2 + 1, size) * 0.02)
        self.blocks = nn.Sequential(*(Block(size, heads) for _ in range(layers)))
        self.norm = nn.LayerNorm(size, 1e-6)
        self.head = nn.Linear(size, classes)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        x = self.patches(image).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.positions
        return self.head(self.norm(self.blocks(x))[:, 0])
