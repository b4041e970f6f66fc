"""Attention within windows: Swin Transformer (Liu et al. 2021) and MaxViT (Tu et al. 2022)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from torch import nn

from benchmarks.torch_models.classification.layers import Residual, SqueezeExcitation, conv_norm

Cut = Literal["window", "grid"]


def _relative(window: int) -> torch.Tensor:
    """The index of the bias of each pair of places in a window: (window**2, window**2)."""
    places = torch.stack(torch.meshgrid(torch.arange(window), torch.arange(window), indexing="ij")).flatten(1)
    rows, columns = (places[:, :, None] - places[:, None, :] + window - 1).unbind(0)
    return rows * (2 * window - 1) + columns


class WindowAttention(nn.Module):
    """Attention among the places of each window, (..., places, channels), with a bias of their relative position."""

    def __init__(self, width: int, heads: int, window: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.table = nn.Parameter(torch.randn((2 * window - 1) ** 2, heads) * 0.02)
        self.register_buffer("index", _relative(window), persistent=False)

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        n, places, width = x.shape
        q, k, v = self.qkv(x).reshape(n, places, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        scores = q * (width // self.heads) ** -0.5 @ k.transpose(-2, -1)
        scores = scores + self.table[self.index].permute(2, 0, 1).unsqueeze(0)
        if mask is not None:
            windows = mask.shape[0]
            scores = scores.view(n // windows, windows, self.heads, places, places) + mask[None, :, None]
            scores = scores.view(n, self.heads, places, places)
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(n, places, width))


def _feed_forward(width: int) -> nn.Module:
    return nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))


class SwinBlock(nn.Module):
    """Attention within windows of 7x7 of an image (N, H, W, C), shifted by half a window in every other block."""

    def __init__(self, width: int, heads: int, size: int, shifted: bool, window: int = 7) -> None:
        super().__init__()
        self.window, self.shift = window, window // 2 if shifted and size > window else 0
        self.norm1, self.norm2 = nn.LayerNorm(width, 1e-5), nn.LayerNorm(width, 1e-5)
        self.attention, self.feed_forward = WindowAttention(width, heads, window), _feed_forward(width)
        self.register_buffer("mask", self._mask(size) if self.shift else None, persistent=False)

    def _mask(self, size: int) -> torch.Tensor:
        """-100 between places that were not neighbours before the shift: (windows, places, places)."""
        areas = torch.zeros(size, size)
        ends = (slice(0, -self.window), slice(-self.window, -self.shift), slice(-self.shift, None))
        for number, (rows, columns) in enumerate((r, c) for r in ends for c in ends):
            areas[rows, columns] = number
        cut = areas.view(size // self.window, self.window, size // self.window, self.window).transpose(1, 2)
        flat = cut.reshape(-1, self.window**2)
        return torch.where(flat[:, None] == flat[:, :, None], 0.0, -100.0)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n, h, w, c = x.shape
        y = self.norm1(x)
        if self.shift:
            y = torch.roll(y, (-self.shift, -self.shift), (1, 2))
        y = y.view(n, h // self.window, self.window, w // self.window, self.window, c).permute(0, 1, 3, 2, 4, 5)
        y = self.attention(y.reshape(-1, self.window**2, c), self.mask)
        y = y.view(n, h // self.window, w // self.window, self.window, self.window, c).permute(0, 1, 3, 2, 4, 5)
        y = y.reshape(n, h, w, c)
        if self.shift:
            y = torch.roll(y, (self.shift, self.shift), (1, 2))
        x = x + y
        return x + self.feed_forward(self.norm2(x))


class PatchMerging(nn.Module):
    """Four neighbours become one place of twice the width."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm, self.reduction = nn.LayerNorm(4 * width), nn.Linear(4 * width, 2 * width, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parts = [x[:, row::2, column::2] for column in (0, 1) for row in (0, 1)]
        return self.reduction(self.norm(torch.cat(parts, -1)))


class Swin(nn.Module):
    """Images (N, 3, 224, 224) to logits; the defaults are Swin-T."""

    def __init__(self, blocks: Sequence[int] = (2, 2, 6, 2), width: int = 96, heads: int = 3) -> None:
        super().__init__()
        self.patches, self.first = nn.Conv2d(3, width, 4, 4), nn.LayerNorm(width)
        layers: list[nn.Module] = []
        for stage, count in enumerate(blocks):
            if stage:
                layers.append(PatchMerging(width << (stage - 1)))
            of_stage = width << stage, heads << stage, 56 >> stage
            layers += [SwinBlock(*of_stage, shifted=number % 2 == 1) for number in range(count)]
        self.layers, features = nn.Sequential(*layers), width << (len(blocks) - 1)
        self.norm, self.head = nn.LayerNorm(features), nn.Linear(features, 1000)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        x = self.first(self.patches(image).permute(0, 2, 3, 1))
        return self.head(self.norm(self.layers(x)).mean((1, 2)))


class CutAttention(nn.Module):
    """Attention within windows of an image (N, C, H, W), or among the places of a grid that covers it."""

    def __init__(self, width: int, cut: Cut, window: int = 7) -> None:
        super().__init__()
        self.cut, self.window = cut, window
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention, self.feed_forward = WindowAttention(width, width // 32, window), _feed_forward(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n, c, h, w = x.shape
        p, rows, columns = self.window, h // self.window, w // self.window
        if self.cut == "window":
            y = x.view(n, c, rows, p, columns, p).permute(0, 2, 4, 3, 5, 1)
        else:
            y = x.view(n, c, p, rows, p, columns).permute(0, 3, 5, 2, 4, 1)
        y = y.reshape(-1, p * p, c)
        y = y + self.attention(self.norm1(y))
        y = y + self.feed_forward(self.norm2(y))
        y = y.view(n, rows, columns, p, p, c)
        order = (0, 5, 1, 3, 2, 4) if self.cut == "window" else (0, 5, 3, 1, 4, 2)
        return y.permute(order).reshape(n, c, h, w)


def _mbconv(inputs: int, outputs: int, stride: int) -> nn.Module:
    inner = 4 * outputs
    layers = nn.Sequential(
        nn.BatchNorm2d(inputs, 1e-3),
        conv_norm(inputs, inner, 1, activation=nn.GELU),
        conv_norm(inner, inner, 3, stride, inner, nn.GELU),
        SqueezeExcitation(inner, outputs // 4, nn.SiLU, nn.Sigmoid),
        nn.Conv2d(inner, outputs, 1),
    )
    pooled = [nn.AvgPool2d(3, stride, 1)] if stride > 1 else []
    project = [nn.Conv2d(inputs, outputs, 1)] if stride > 1 or inputs != outputs else []
    return Residual(layers, nn.Sequential(*pooled, *project))


class MaxViT(nn.Module):
    """Images (N, 3, 224, 224) to logits; the defaults are MaxViT-T."""

    def __init__(self, blocks: Sequence[int] = (2, 2, 5, 2), width: int = 64) -> None:
        super().__init__()
        stem = [conv_norm(3, width, 3, 2, activation=nn.GELU), nn.Conv2d(width, width, 3, padding=1)]
        layers: list[nn.Module] = []
        channels = width
        for stage, count in enumerate(blocks):
            for number in range(count):
                outputs = width << stage
                layers += [_mbconv(channels, outputs, 1 if number else 2)]
                layers += [CutAttention(outputs, "window"), CutAttention(outputs, "grid")]
                channels = outputs
        self.features = nn.Sequential(*stem, *layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())
        hidden = nn.Linear(channels, channels)
        self.head = nn.Sequential(nn.LayerNorm(channels), hidden, nn.Tanh(), nn.Linear(channels, 1000, bias=False))

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return self.head(self.features(image))
