"""A two-layer LSTM (Hochreiter and Schmidhuber 1997) over a sequence, with a linear read-out of the last step."""

from __future__ import annotations

import torch
from torch import nn


class Lstm(nn.Module):
    """Sequences (batch, time, features) to (batch, classes)."""

    def __init__(self, features: int = 128, hidden: int = 256, layers: int = 2, classes: int = 10) -> None:
        super().__init__()
        self.lstm = nn.LSTM(features, hidden, layers, batch_first=True)
        self.head = nn.Linear(hidden, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden, _ = self.lstm(x)
        return self.head(hidden[:, -1])
