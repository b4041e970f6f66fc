"""The variants of each architecture: the full size that is measured, and a tiny one that tests compile."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import nn

from benchmarks.torch_models.bert import Bert
from benchmarks.torch_models.dcgan import Generator
from benchmarks.torch_models.gpt import Gpt
from benchmarks.torch_models.mobilenet import MobileNetV2
from benchmarks.torch_models.recurrent import Recurrent
from benchmarks.torch_models.resnet import ResNet
from benchmarks.torch_models.unet import UNet
from benchmarks.torch_models.vit import ViT

SEED = 7
CALIBRATION = 4
"""Examples in the batch that gives batch norms their statistics."""

Inputs = Mapping[str, torch.Tensor]


@dataclass(frozen=True)
class Variant:
    """A network of one size: how to make it, and its inputs by name."""

    name: str
    make: Callable[[], nn.Module]
    inputs: Callable[[torch.Generator], Inputs]

    def module(self) -> nn.Module:
        """The network in evaluation mode: seeded weights, batch norms with the statistics of seeded inputs."""
        with torch.random.fork_rng():
            torch.manual_seed(SEED)
            module = self.make()
            norms = [layer for layer in module.modules() if isinstance(layer, nn.BatchNorm2d)]
            if norms:
                _calibrate(module, norms, [self.example(number) for number in range(1, CALIBRATION + 1)])
        return module.eval()

    def example(self, number: int = 0) -> Inputs:
        """Seeded inputs, in the order of ``forward``; another number gives others."""
        return self.inputs(torch.Generator().manual_seed(SEED + 1 + number))


def _calibrate(module: nn.Module, norms: Sequence[nn.BatchNorm2d], examples: Sequence[Inputs]) -> None:
    """Give batch norms a random affine part and the statistics of one batch.

    With statistics that have nothing to do with the data, signals fade from layer to layer until every channel is
    dead, and the result no longer depends on the input: comparing it would test nothing.
    """
    with torch.no_grad():
        for norm in norms:
            norm.weight.uniform_(0.8, 1.2)
            norm.bias.normal_(0.0, 0.1)
            norm.momentum = None
        module.train()
        module(*(torch.cat([example[name] for example in examples]) for name in examples[0]))


def image(*shape: int) -> Callable[[torch.Generator], Inputs]:
    """One seeded image or batch of them."""
    return lambda generator: {"image": torch.randn(shape, generator=generator)}


def tokens(vocabulary: int, sequence: int) -> Callable[[torch.Generator], Inputs]:
    """Random token ids of one sequence."""
    return lambda generator: {"ids": torch.randint(vocabulary, (1, sequence), generator=generator)}


def masked_tokens(vocabulary: int, sequence: int) -> Callable[[torch.Generator], Inputs]:
    """The last eighth of the sequence is padding."""
    mask = (torch.arange(sequence) < sequence - sequence // 8).to(torch.int64).unsqueeze(0)
    return lambda generator: {**tokens(vocabulary, sequence)(generator), "mask": mask}


def _named(name: str, *shape: int) -> Callable[[torch.Generator], Inputs]:
    return lambda generator: {name: torch.randn(shape, generator=generator)}


_ALL = (
    Variant("resnet50", ResNet, image(1, 3, 224, 224)),
    Variant("mobilenetv2", MobileNetV2, image(1, 3, 224, 224)),
    Variant("bert", Bert, masked_tokens(30522, 128)),
    Variant("gpt", Gpt, tokens(8192, 128)),
    Variant("lstm", lambda: Recurrent(nn.LSTM), _named("x", 1, 64, 128)),
    Variant("gru", lambda: Recurrent(nn.GRU), _named("x", 1, 64, 128)),
    Variant("unet", UNet, image(1, 3, 128, 128)),
    Variant("dcgan", Generator, _named("noise", 1, 100, 1, 1)),
    Variant("vit", ViT, image(1, 3, 224, 224)),
)

_TINY = (
    Variant("resnet-tiny", lambda: ResNet((1, 2), 8, 10), image(1, 3, 32, 32)),
    Variant(
        "mobilenet-tiny",
        lambda: MobileNetV2(((1, 8, 1, 1), (6, 16, 2, 2)), 8, 32, 10),
        image(1, 3, 32, 32),
    ),
    Variant("bert-tiny", lambda: Bert(1, 32, 4, 64, 32), masked_tokens(64, 16)),
    Variant("gpt-tiny", lambda: Gpt(1, 32, 4, 64, 32), tokens(64, 12)),
    Variant("lstm-tiny", lambda: Recurrent(nn.LSTM, 8, 12, 2, 5), _named("x", 2, 7, 8)),
    Variant("gru-tiny", lambda: Recurrent(nn.GRU, 8, 12, 2, 5), _named("x", 2, 7, 8)),
    Variant("unet-tiny", lambda: UNet(4, 2), image(1, 3, 16, 16)),
    Variant("dcgan-tiny", lambda: Generator(12, 4, 1), _named("noise", 1, 12, 1, 1)),
    Variant("vit-tiny", lambda: ViT(1, 32, 4, 32, 8, 10), image(1, 3, 32, 32)),
)

FULL: Mapping[str, Variant] = {variant.name: variant for variant in _ALL}
"""As they are measured, batch 1."""

TINY: Mapping[str, Variant] = {variant.name: variant for variant in _TINY}
"""The same architectures small enough to compile in a second or two."""
