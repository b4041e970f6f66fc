"""GoogLeNet and Inception v3 (Szegedy et al. 2014, 2015) without their auxiliary classifiers."""

from __future__ import annotations

from torch import nn

from benchmarks.torch_models.classification.layers import Branches, classifier, conv_norm

_GOOGLENET = (
    ((192, 64, 96, 128, 16, 32, 32), (256, 128, 128, 192, 32, 96, 64)),
    (
        (480, 192, 96, 208, 16, 48, 64),
        (512, 160, 112, 224, 24, 64, 64),
        (512, 128, 128, 256, 24, 64, 64),
        (512, 112, 144, 288, 32, 64, 64),
        (528, 256, 160, 320, 32, 128, 128),
    ),
    ((832, 256, 160, 320, 32, 128, 128), (832, 384, 192, 384, 48, 128, 128)),
)
"""Of each stage and module: inputs, 1x1, 3x3 reduced and 3x3, "5x5" reduced and "5x5", pooled."""


def _module(inputs: int, one: int, down3: int, three: int, down5: int, five: int, pooled: int) -> nn.Module:
    return Branches(
        [
            conv_norm(inputs, one, 1),
            nn.Sequential(conv_norm(inputs, down3, 1), conv_norm(down3, three, 3)),
            nn.Sequential(conv_norm(inputs, down5, 1), conv_norm(down5, five, 3)),
            nn.Sequential(nn.MaxPool2d(3, 1, 1), conv_norm(inputs, pooled, 1)),
        ]
    )


def googlenet() -> nn.Module:
    """As torchvision has it: batch norms, and 3x3 where the paper has 5x5."""
    layers: list[nn.Module] = [conv_norm(3, 64, 7, 2), nn.MaxPool2d(3, 2, ceil_mode=True)]
    layers += [conv_norm(64, 64, 1), conv_norm(64, 192, 3), nn.MaxPool2d(3, 2, ceil_mode=True)]
    poolings = (nn.MaxPool2d(3, 2, ceil_mode=True), nn.MaxPool2d(2, 2, ceil_mode=True), nn.Identity())
    for modules, pooling in zip(_GOOGLENET, poolings, strict=True):
        layers += [*(_module(*widths) for widths in modules), pooling]
    return nn.Sequential(*layers, classifier(1024))


def _pooled(inputs: int, outputs: int) -> nn.Module:
    return nn.Sequential(nn.AvgPool2d(3, 1, 1), conv_norm(inputs, outputs, 1))


def _a(inputs: int, pooled: int) -> nn.Module:
    five = nn.Sequential(conv_norm(inputs, 48, 1), conv_norm(48, 64, 5))
    twice = nn.Sequential(conv_norm(inputs, 64, 1), conv_norm(64, 96, 3), conv_norm(96, 96, 3))
    return Branches([conv_norm(inputs, 64, 1), five, twice, _pooled(inputs, pooled)])


def _b(inputs: int) -> nn.Module:
    twice = nn.Sequential(conv_norm(inputs, 64, 1), conv_norm(64, 96, 3), conv_norm(96, 96, 3, 2, padding=0))
    return Branches([conv_norm(inputs, 384, 3, 2, padding=0), twice, nn.MaxPool2d(3, 2)])


def _c(inner: int) -> nn.Module:
    seven = nn.Sequential(conv_norm(768, inner, 1), conv_norm(inner, inner, (1, 7)), conv_norm(inner, 192, (7, 1)))
    twice = nn.Sequential(
        conv_norm(768, inner, 1),
        conv_norm(inner, inner, (7, 1)),
        conv_norm(inner, inner, (1, 7)),
        conv_norm(inner, inner, (7, 1)),
        conv_norm(inner, 192, (1, 7)),
    )
    return Branches([conv_norm(768, 192, 1), seven, twice, _pooled(768, 192)])


def _d() -> nn.Module:
    three = nn.Sequential(conv_norm(768, 192, 1), conv_norm(192, 320, 3, 2, padding=0))
    seven = nn.Sequential(
        conv_norm(768, 192, 1),
        conv_norm(192, 192, (1, 7)),
        conv_norm(192, 192, (7, 1)),
        conv_norm(192, 192, 3, 2, padding=0),
    )
    return Branches([three, seven, nn.MaxPool2d(3, 2)])


def _split(inputs: int) -> nn.Module:
    return Branches([conv_norm(inputs, 384, (1, 3)), conv_norm(inputs, 384, (3, 1))])


def _e(inputs: int) -> nn.Module:
    three = nn.Sequential(conv_norm(inputs, 384, 1), _split(384))
    twice = nn.Sequential(conv_norm(inputs, 448, 1), conv_norm(448, 384, 3), _split(384))
    return Branches([conv_norm(inputs, 320, 1), three, twice, _pooled(inputs, 192)])


def inception_v3() -> nn.Module:
    """For images of 299x299."""
    stem = [
        conv_norm(3, 32, 3, 2, padding=0),
        conv_norm(32, 32, 3, padding=0),
        conv_norm(32, 64, 3),
        nn.MaxPool2d(3, 2),
    ]
    stem += [conv_norm(64, 80, 1), conv_norm(80, 192, 3, padding=0), nn.MaxPool2d(3, 2)]
    early = [_a(192, 32), _a(256, 64), _a(288, 64), _b(288)]
    middle = [_c(128), _c(160), _c(160), _c(192), _d()]
    return nn.Sequential(*stem, *early, *middle, _e(1280), _e(2048), classifier(2048))
