"""Residual networks: ResNet-18, and those of bottlenecks with groups or width (ResNet-50, ResNeXt, Wide ResNet)."""

from __future__ import annotations

from collections.abc import Sequence

from torch import nn

from benchmarks.torch_models.classification.layers import Residual, classifier, conv_norm


def _shortcut(inputs: int, outputs: int, stride: int) -> nn.Module | None:
    return conv_norm(inputs, outputs, 1, stride, activation=None) if stride > 1 or inputs != outputs else None


def _basic(inputs: int, width: int, stride: int) -> nn.Module:
    layers = nn.Sequential(conv_norm(inputs, width, 3, stride), conv_norm(width, width, 3, activation=None))
    return Residual(layers, _shortcut(inputs, width, stride), nn.ReLU())


def _bottleneck(inputs: int, width: int, stride: int, groups: int, per_group: int) -> nn.Module:
    inner = width * per_group // 64 * groups
    three = conv_norm(inner, inner, 3, stride, groups)
    layers = nn.Sequential(conv_norm(inputs, inner, 1), three, conv_norm(inner, 4 * width, 1, activation=None))
    return Residual(layers, _shortcut(inputs, 4 * width, stride), nn.ReLU())


def resnet(blocks: Sequence[int], groups: int = 1, per_group: int = 64, bottlenecks: bool = True) -> nn.Module:
    """He et al. 2015; Xie et al. 2016 with groups; Zagoruyko and Komodakis 2016 with a larger width."""
    layers: list[nn.Module] = [conv_norm(3, 64, 7, 2), nn.MaxPool2d(3, 2, 1)]
    channels = 64
    for stage, count in enumerate(blocks):
        for number in range(count):
            width, stride = 64 << stage, 2 if stage and not number else 1
            if bottlenecks:
                layers.append(_bottleneck(channels, width, stride, groups, per_group))
            else:
                layers.append(_basic(channels, width, stride))
            channels = 4 * width if bottlenecks else width
    return nn.Sequential(*layers, classifier(channels))
