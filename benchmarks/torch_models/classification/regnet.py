"""RegNet (Radosavovic et al. 2020): bottlenecks of grouped convolutions, with squeeze and excitation in RegNetY."""

from __future__ import annotations

from collections.abc import Sequence

from torch import nn

from benchmarks.torch_models.classification.layers import RELU, Residual, SqueezeExcitation, classifier, conv_norm


def _block(inputs: int, outputs: int, stride: int, group: int, squeezes: bool) -> nn.Module:
    layers = [conv_norm(inputs, outputs, 1), conv_norm(outputs, outputs, 3, stride, outputs // group)]
    if squeezes:
        layers.append(SqueezeExcitation(outputs, round(inputs / 4), RELU, nn.Sigmoid))
    layers.append(conv_norm(outputs, outputs, 1, activation=None))
    changes = stride > 1 or inputs != outputs
    shortcut = conv_norm(inputs, outputs, 1, stride, activation=None) if changes else None
    return Residual(nn.Sequential(*layers), shortcut, nn.ReLU())


def regnet(blocks: Sequence[int], widths: Sequence[int], group: int, squeezes: bool) -> nn.Module:
    """Blocks and channels of each stage, channels of a group."""
    layers: list[nn.Module] = [conv_norm(3, 32, 3, 2)]
    channels = 32
    for count, width in zip(blocks, widths, strict=True):
        for number in range(count):
            layers.append(_block(channels, width, 1 if number else 2, group, squeezes))
            channels = width
    return nn.Sequential(*layers, classifier(channels))
