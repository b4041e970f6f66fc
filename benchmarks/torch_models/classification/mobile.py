"""Networks for phones: MobileNetV3, MNASNet, ShuffleNetV2."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

from benchmarks.torch_models.classification.layers import (
    RELU,
    Activation,
    Residual,
    SqueezeExcitation,
    classifier,
    conv_norm,
    divisible,
)

Row = tuple[int, int, int, bool, Activation, int]
"""Kernel, expanded channels, channels, squeeze and excitation, activation, stride."""

LARGE: tuple[Row, ...] = (
    (3, 16, 16, False, RELU, 1),
    (3, 64, 24, False, RELU, 2),
    (3, 72, 24, False, RELU, 1),
    (5, 72, 40, True, RELU, 2),
    (5, 120, 40, True, RELU, 1),
    (5, 120, 40, True, RELU, 1),
    (3, 240, 80, False, nn.Hardswish, 2),
    (3, 200, 80, False, nn.Hardswish, 1),
    (3, 184, 80, False, nn.Hardswish, 1),
    (3, 184, 80, False, nn.Hardswish, 1),
    (3, 480, 112, True, nn.Hardswish, 1),
    (3, 672, 112, True, nn.Hardswish, 1),
    (5, 672, 160, True, nn.Hardswish, 2),
    (5, 960, 160, True, nn.Hardswish, 1),
    (5, 960, 160, True, nn.Hardswish, 1),
)
SMALL: tuple[Row, ...] = (
    (3, 16, 16, True, RELU, 2),
    (3, 72, 24, False, RELU, 2),
    (3, 88, 24, False, RELU, 1),
    (5, 96, 40, True, nn.Hardswish, 2),
    (5, 240, 40, True, nn.Hardswish, 1),
    (5, 240, 40, True, nn.Hardswish, 1),
    (5, 120, 48, True, nn.Hardswish, 1),
    (5, 144, 48, True, nn.Hardswish, 1),
    (5, 288, 96, True, nn.Hardswish, 2),
    (5, 576, 96, True, nn.Hardswish, 1),
    (5, 576, 96, True, nn.Hardswish, 1),
)


def mobilenet_v3(rows: Sequence[Row], hidden: int) -> nn.Module:
    """Howard et al. 2019."""
    layers: list[nn.Module] = [conv_norm(3, 16, 3, 2, activation=nn.Hardswish)]
    channels = 16
    for kernel, expanded, outputs, squeezes, activation, stride in rows:
        inner = [conv_norm(channels, expanded, 1, activation=activation)] if expanded != channels else []
        inner.append(conv_norm(expanded, expanded, kernel, stride, expanded, activation))
        if squeezes:
            inner.append(SqueezeExcitation(expanded, divisible(expanded / 4), RELU, nn.Hardsigmoid))
        block = nn.Sequential(*inner, conv_norm(expanded, outputs, 1, activation=None))
        layers.append(Residual(block) if stride == 1 and channels == outputs else block)
        channels = outputs
    last = 6 * channels
    layers += [conv_norm(channels, last, 1, activation=nn.Hardswish), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    return nn.Sequential(*layers, nn.Linear(last, hidden), nn.Hardswish(), nn.Dropout(0.2), nn.Linear(hidden, 1000))


def mnasnet() -> nn.Module:
    """Tan et al. 2018, depth 1.0."""
    layers: list[nn.Module] = [
        conv_norm(3, 32, 3, 2),
        conv_norm(32, 32, 3, 1, 32),
        conv_norm(32, 16, 1, activation=None),
    ]
    channels = 16
    stages = (
        (3, 24, 3, 2, 3),
        (5, 40, 3, 2, 3),
        (5, 80, 3, 2, 6),
        (3, 96, 2, 1, 6),
        (5, 192, 4, 2, 6),
        (3, 320, 1, 1, 6),
    )
    for kernel, outputs, count, first, expansion in stages:
        for number in range(count):
            inner, stride = channels * expansion, 1 if number else first
            depthwise = conv_norm(inner, inner, kernel, stride, inner)
            block = nn.Sequential(
                conv_norm(channels, inner, 1), depthwise, conv_norm(inner, outputs, 1, activation=None)
            )
            layers.append(Residual(block) if number else block)
            channels = outputs
    return nn.Sequential(*layers, conv_norm(channels, 1280, 1), classifier(1280))


class ShuffleUnit(nn.Module):
    """Half of the channels as they are (all, made smaller, with stride 2), half through layers; then shuffled."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        half = outputs // 2
        self.splits = stride == 1
        inner = inputs // 2 if self.splits else inputs
        smaller = conv_norm(inputs, inputs, 3, stride, inputs, None)
        self.beside = nn.Identity() if self.splits else nn.Sequential(smaller, conv_norm(inputs, half, 1))
        depthwise = conv_norm(half, half, 3, stride, half, None)
        self.layers = nn.Sequential(conv_norm(inner, half, 1), depthwise, conv_norm(half, half, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        left, right = x.chunk(2, 1) if self.splits else (x, x)
        joined = torch.cat([self.beside(left), self.layers(right)], 1)
        n, c, h, w = joined.shape
        return joined.view(n, 2, c // 2, h, w).transpose(1, 2).reshape(n, c, h, w)


def shufflenet_v2(widths: Sequence[int] = (116, 232, 464), last: int = 1024) -> nn.Module:
    """Ma et al. 2018, width 1.0."""
    layers: list[nn.Module] = [conv_norm(3, 24, 3, 2), nn.MaxPool2d(3, 2, 1)]
    channels = 24
    for width, count in zip(widths, (4, 8, 4), strict=True):
        layers.append(ShuffleUnit(channels, width, 2))
        layers += [ShuffleUnit(width, width, 1) for _ in range(count - 1)]
        channels = width
    return nn.Sequential(*layers, conv_norm(channels, last, 1), classifier(last))
