"""EfficientNet (Tan and Le 2019) and EfficientNetV2 (2021)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from torch import nn

from benchmarks.torch_models.classification.layers import Residual, SqueezeExcitation, classifier, conv_norm, divisible

Row = tuple[bool, int, int, int, int, int]
"""Fused (the 1x1 and the depthwise convolution are one), expansion, kernel, stride, channels, blocks."""

B0: tuple[Row, ...] = (
    (False, 1, 3, 1, 16, 1),
    (False, 6, 3, 2, 24, 2),
    (False, 6, 5, 2, 40, 2),
    (False, 6, 3, 2, 80, 3),
    (False, 6, 5, 1, 112, 3),
    (False, 6, 5, 2, 192, 4),
    (False, 6, 3, 1, 320, 1),
)
V2_S: tuple[Row, ...] = (
    (True, 1, 3, 1, 24, 2),
    (True, 4, 3, 2, 48, 4),
    (True, 4, 3, 2, 64, 4),
    (False, 4, 3, 2, 128, 6),
    (False, 6, 3, 1, 160, 9),
    (False, 6, 3, 2, 256, 15),
)


def _block(fused: bool, expansion: int, kernel: int, stride: int, inputs: int, outputs: int) -> nn.Module:
    inner = inputs * expansion
    if fused:
        last = nn.SiLU if expansion == 1 else None
        grow = [conv_norm(inputs, inner, kernel, stride, activation=nn.SiLU)] if expansion > 1 else []
        shrink = conv_norm(inner, outputs, 1, activation=None)
        layers = nn.Sequential(*grow, shrink) if grow else conv_norm(inputs, outputs, kernel, stride, activation=last)
    else:
        grow = [conv_norm(inputs, inner, 1, activation=nn.SiLU)] if expansion > 1 else []
        depthwise = conv_norm(inner, inner, kernel, stride, inner, nn.SiLU)
        scale = SqueezeExcitation(inner, max(1, inputs // 4), nn.SiLU, nn.Sigmoid)
        layers = nn.Sequential(*grow, depthwise, scale, conv_norm(inner, outputs, 1, activation=None))
    return Residual(layers) if stride == 1 and inputs == outputs else layers


def efficientnet(rows: Sequence[Row], width: float = 1.0, depth: float = 1.0, last: int | None = None) -> nn.Module:
    """Widths and depths times those of the table; B3 is B0 with 1.2 and 1.4."""
    scaled = [(f, e, k, s, divisible(c * width), math.ceil(n * depth)) for f, e, k, s, c, n in rows]
    channels = scaled[0][4] if rows[0][0] else divisible(32 * width)
    layers: list[nn.Module] = [conv_norm(3, channels, 3, 2, activation=nn.SiLU)]
    for fused, expansion, kernel, stride, outputs, count in scaled:
        for number in range(count):
            layers.append(_block(fused, expansion, kernel, 1 if number else stride, channels, outputs))
            channels = outputs
    features = last or 4 * channels
    return nn.Sequential(*layers, conv_norm(channels, features, 1, activation=nn.SiLU), classifier(features))
