"""What the families share: convolutions with norms, squeeze and excitation, rounding of channels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import nn

Activation = Callable[[], nn.Module]
RELU: Activation = partial(nn.ReLU, inplace=False)


def conv_norm(
    inputs: int,
    outputs: int,
    kernel: int | tuple[int, int],
    stride: int = 1,
    groups: int = 1,
    activation: Activation | None = RELU,
    padding: int | tuple[int, int] | None = None,
) -> nn.Sequential:
    """A convolution without bias, a batch norm and an activation; padded to keep the size, unless told otherwise."""
    height, width = (kernel, kernel) if isinstance(kernel, int) else kernel
    same = (height // 2, width // 2) if padding is None else padding
    conv = nn.Conv2d(inputs, outputs, (height, width), stride, same, groups=groups, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(outputs), *([activation()] if activation else []))


class SqueezeExcitation(nn.Module):
    """Scales channels by a gate of their means (Hu et al. 2018)."""

    def __init__(self, channels: int, squeezed: int, activation: Activation, gate: Activation) -> None:
        super().__init__()
        down, up = nn.Conv2d(channels, squeezed, 1), nn.Conv2d(squeezed, channels, 1)
        self.scale = nn.Sequential(nn.AdaptiveAvgPool2d(1), down, activation(), up, gate())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.scale(x)


class Residual(nn.Module):
    """An input, or a projection of it, added to what layers make of it; then an activation, if there is one."""

    def __init__(self, layers: nn.Module, shortcut: nn.Module | None = None, after: nn.Module | None = None) -> None:
        super().__init__()
        self.layers, self.shortcut, self.after = layers, shortcut or nn.Identity(), after or nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.after(self.shortcut(x) + self.layers(x))


class Branches(nn.Module):
    """What several layers make of one input, joined along the channels."""

    def __init__(self, branches: Sequence[nn.Module]) -> None:
        super().__init__()
        self.branches = nn.ModuleList(branches)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([branch(x) for branch in self.branches], 1)


def classifier(channels: int, classes: int = 1000) -> nn.Sequential:
    """Means of all pixels and a linear layer."""
    return nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes))


def divisible(channels: float, by: int = 8) -> int:
    """The nearest multiple, at least 0.9 times as many, as the MobileNets round."""
    rounded = max(by, int(channels + by / 2) // by * by)
    return rounded + by if rounded < 0.9 * channels else rounded
