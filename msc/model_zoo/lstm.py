"""A classifier of sequences: an embedding, an LSTM in one or two directions, and a layer on its last states."""

from __future__ import annotations

from msc import nn, ops
from msc.ops import Tensor


class LstmClassifier(nn.Cell):
    """Tokens `[batch, length]` to scores `[batch, classes]`."""

    def __init__(
        self, vocabulary: int, width: int, hidden: int, classes: int, layers: int = 1, bidirectional: bool = False
    ) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.lstm = nn.LSTM(width, hidden, num_layers=layers, batch_first=True, bidirectional=bidirectional)
        self.fc = nn.Dense(hidden * (2 if bidirectional else 1), classes)

    def construct(self, tokens: Tensor) -> Tensor:
        states, _ = self.lstm(self.tokens(tokens))
        return self.fc(ops.mean(states, 1))
