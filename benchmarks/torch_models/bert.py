"""A BERT encoder (Devlin et al. 2018): embeddings, post-norm attention blocks with GeLU, tanh pooler."""

from __future__ import annotations

import math

import torch
from torch import nn


class SelfAttention(nn.Module):
    """softmax(Q K^T / sqrt(d) + mask) V per head; (batch, sequence, size) to the same."""

    def __init__(self, size: int, heads: int) -> None:
        super().__init__()
        self.heads, self.depth = heads, size // heads
        self.query, self.key, self.value = (nn.Linear(size, size) for _ in range(3))
        self.output = nn.Linear(size, size)

    def _split(self, x: torch.Tensor) -> torch.Tensor:
        return x.view(x.shape[0], x.shape[1], self.heads, self.depth).transpose(1, 2)

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        query, key, value = (self._split(layer(x)) for layer in (self.query, self.key, self.value))
        scores = query @ key.transpose(-1, -2) / math.sqrt(self.depth) + mask
        mixed = torch.softmax(scores, -1) @ value
        return self.output(mixed.transpose(1, 2).reshape(x.shape))


class Layer(nn.Module):
    """Attention and feed-forward, each added to its input and then normalised."""

    def __init__(self, size: int, heads: int) -> None:
        super().__init__()
        self.attention = SelfAttention(size, heads)
        self.norm1, self.norm2 = nn.LayerNorm(size, 1e-12), nn.LayerNorm(size, 1e-12)
        self.feed_forward = nn.Sequential(nn.Linear(size, 4 * size), nn.GELU(), nn.Linear(4 * size, size))

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        x = self.norm1(x + self.attention(x, mask))
        return self.norm2(x + self.feed_forward(x))


class Bert(nn.Module):
    """Token ids and mask, both (batch, sequence) i64, to hidden states and the pooled first one."""

    def __init__(
        self, layers: int = 12, size: int = 768, heads: int = 12, vocabulary: int = 30522, positions: int = 512
    ) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, size)
        self.positions = nn.Embedding(positions, size)
        self.types = nn.Embedding(2, size)
        self.norm = nn.LayerNorm(size, 1e-12)
        self.layers = nn.ModuleList(Layer(size, heads) for _ in range(layers))
        self.pooler = nn.Linear(size, size)

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        place = torch.arange(ids.shape[1]).unsqueeze(0)
        x = self.norm(self.tokens(ids) + self.positions(place) + self.types(torch.zeros_like(ids)))
        bias = (1.0 - mask[:, None, None, :].to(x.dtype)) * -10000.0
        for layer in self.layers:
            x = layer(x, bias)
        return x, torch.tanh(self.pooler(x[:, 0]))
