"""The networks by torchvision's names, with the size of the images that they are compiled for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from torch import nn

from benchmarks.torch_models.catalogue import Variant, image
from benchmarks.torch_models.classification.convnext import convnext
from benchmarks.torch_models.classification.dense import densenet
from benchmarks.torch_models.classification.efficient import B0, V2_S, efficientnet
from benchmarks.torch_models.classification.inception import googlenet, inception_v3
from benchmarks.torch_models.classification.mobile import LARGE, SMALL, mnasnet, mobilenet_v3, shufflenet_v2
from benchmarks.torch_models.classification.plain import VGG11, VGG16, alexnet, squeezenet, vgg
from benchmarks.torch_models.classification.regnet import regnet
from benchmarks.torch_models.classification.residual import resnet
from benchmarks.torch_models.classification.windows import MaxViT, Swin
from benchmarks.torch_models.mobilenet import MobileNetV2
from benchmarks.torch_models.vit import ViT

_FIFTY = (3, 4, 6, 3)

_ALL: tuple[tuple[str, Callable[[], nn.Module], int], ...] = (
    ("alexnet", alexnet, 224),
    ("vgg11", partial(vgg, VGG11), 224),
    ("vgg16", partial(vgg, VGG16), 224),
    ("resnet18", partial(resnet, (2, 2, 2, 2), bottlenecks=False), 224),
    ("resnet50", partial(resnet, _FIFTY), 224),
    ("resnext50_32x4d", partial(resnet, _FIFTY, 32, 4), 224),
    ("wide_resnet50_2", partial(resnet, _FIFTY, per_group=128), 224),
    ("densenet121", partial(densenet, (6, 12, 24, 16)), 224),
    ("densenet201", partial(densenet, (6, 12, 48, 32)), 224),
    ("squeezenet1_1", squeezenet, 224),
    ("googlenet", googlenet, 224),
    ("inception_v3", inception_v3, 299),
    ("mobilenet_v2", MobileNetV2, 224),
    ("mobilenet_v3_large", partial(mobilenet_v3, LARGE, 1280), 224),
    ("mobilenet_v3_small", partial(mobilenet_v3, SMALL, 1024), 224),
    ("mnasnet1_0", mnasnet, 224),
    ("shufflenet_v2_x1_0", shufflenet_v2, 224),
    ("efficientnet_b0", partial(efficientnet, B0), 224),
    ("efficientnet_b3", partial(efficientnet, B0, 1.2, 1.4), 300),
    ("efficientnet_v2_s", partial(efficientnet, V2_S, last=1280), 384),
    ("regnet_y_400mf", partial(regnet, (1, 3, 6, 6), (48, 104, 208, 440), 8, True), 224),
    ("regnet_y_400mf-200", partial(regnet, (1, 3, 6, 6), (48, 104, 208, 440), 8, True), 200),
    ("regnet_x_1_6gf", partial(regnet, (2, 4, 10, 2), (72, 168, 408, 912), 24, False), 224),
    ("convnext_tiny", convnext, 224),
    ("vit_b_16", partial(ViT, 12, 768, 12), 224),
    ("swin_t", Swin, 224),
    ("maxvit_t", MaxViT, 224),
)

ZOO: Mapping[str, Variant] = {name: Variant(name, make, image(1, 3, size, size)) for name, make, size in _ALL}
"""Batch 1."""
