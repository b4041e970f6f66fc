"""Recurrent layers over a sequence, with a linear read-out of the last step.

LSTM: Hochreiter and Schmidhuber 1997. GRU: Cho et al. 2014.
"""

from __future__ import annotations

import torch
from torch import nn


class Recurrent(nn.Module):
    """Sequences (batch, time, features) to (batch, classes), through layers of one direction."""

    def __init__(
        self,
        layer: type[nn.LSTM | nn.GRU],
        features: int = 128,
        hidden: int = 256,
        layers: int = 2,
        classes: int = 10,
    ) -> None:
        super().__init__()
        self.layers = layer(features, hidden, layers, batch_first=True)
        self.head = nn.Linear(hidden, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden, _ = self.layers(x)
        return self.head(hidden[:, -1])
