"""Networks of convolutions and poolings in a row: AlexNet, VGG, SqueezeNet."""

from __future__ import annotations

from itertools import pairwise

from torch import nn

from benchmarks.torch_models.classification.layers import Branches

Stages = tuple[tuple[int, int], ...]
"""Convolutions and channels of each stage."""
VGG11: Stages = ((1, 64), (1, 128), (2, 256), (2, 512), (2, 512))
VGG16: Stages = ((2, 64), (2, 128), (3, 256), (3, 512), (3, 512))


def _hidden(*sizes: int) -> list[nn.Module]:
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(sizes):
        layers += [nn.Linear(inputs, outputs), nn.ReLU(), nn.Dropout()]
    return layers


def alexnet() -> nn.Module:
    """Krizhevsky 2014, "One weird trick": one column."""
    features: list[nn.Module] = [nn.Conv2d(3, 64, 11, 4, 2), nn.ReLU(), nn.MaxPool2d(3, 2)]
    features += [nn.Conv2d(64, 192, 5, padding=2), nn.ReLU(), nn.MaxPool2d(3, 2)]
    for inputs, outputs in ((192, 384), (384, 256), (256, 256)):
        features += [nn.Conv2d(inputs, outputs, 3, padding=1), nn.ReLU()]
    features += [nn.MaxPool2d(3, 2), nn.AdaptiveAvgPool2d(6), nn.Flatten()]
    return nn.Sequential(*features, *_hidden(256 * 36, 4096, 4096), nn.Linear(4096, 1000))


def vgg(stages: Stages) -> nn.Module:
    """Simonyan and Zisserman 2014."""
    features: list[nn.Module] = []
    channels = 3
    for count, width in stages:
        for _ in range(count):
            features += [nn.Conv2d(channels, width, 3, padding=1), nn.ReLU()]
            channels = width
        features.append(nn.MaxPool2d(2))
    features += [nn.AdaptiveAvgPool2d(7), nn.Flatten()]
    return nn.Sequential(*features, *_hidden(channels * 49, 4096, 4096), nn.Linear(4096, 1000))


def _fire(inputs: int, squeezed: int, expanded: int) -> nn.Module:
    one = nn.Sequential(nn.Conv2d(squeezed, expanded, 1), nn.ReLU())
    three = nn.Sequential(nn.Conv2d(squeezed, expanded, 3, padding=1), nn.ReLU())
    return nn.Sequential(nn.Conv2d(inputs, squeezed, 1), nn.ReLU(), Branches([one, three]))


def squeezenet() -> nn.Module:
    """Iandola et al. 2016, version 1.1."""
    layers: list[nn.Module] = [nn.Conv2d(3, 64, 3, 2), nn.ReLU(), nn.MaxPool2d(3, 2, ceil_mode=True)]
    channels = 64
    for number, width in enumerate((16, 16, 32, 32, 48, 48, 64, 64)):
        if number in (2, 4):
            layers.append(nn.MaxPool2d(3, 2, ceil_mode=True))
        layers.append(_fire(channels, width, 4 * width))
        channels = 8 * width
    layers += [nn.Dropout(), nn.Conv2d(channels, 1000, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    return nn.Sequential(*layers)
