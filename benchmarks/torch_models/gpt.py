"""A GPT-2 style causal decoder (Radford et al. 2019): pre-norm blocks, tanh GeLU, output tied to the embedding."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional


class Block(nn.Module):
    """Causal attention and feed-forward, each of a normalised input and added to it."""

    def __init__(self, size: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(size), nn.LayerNorm(size)
        self.qkv, self.output = nn.Linear(size, 3 * size), nn.Linear(size, size)
        self.feed_forward = nn.Sequential(
            nn.Linear(size, 4 * size), nn.GELU(approximate="tanh"), nn.Linear(4 * size, size)
        )

    def _attention(self, x: torch.Tensor) -> torch.Tensor:
        batch, sequence, size = x.shape
        parts = self.qkv(x).split(size, dim=2)
        q, k, v = (part.view(batch, sequence, self.heads, size // self.heads).transpose(1, 2) for part in parts)
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.output(mixed.transpose(1, 2).reshape(batch, sequence, size))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self._attention(self.norm1(x))
        return x + self.feed_forward(self.norm2(x))


class Gpt(nn.Module):
    """Token ids (batch, sequence) i64 to logits (batch, sequence, vocabulary)."""

    def __init__(
        self, layers: int = 6, size: int = 768, heads: int = 12, vocabulary: int = 8192, positions: int = 1024
    ) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocabulary, size), nn.Embedding(positions, size)
        self.blocks = nn.Sequential(*(Block(size, heads) for _ in range(layers)))
        self.norm = nn.LayerNorm(size)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.tokens(ids) + self.positions(torch.arange(ids.shape[1]))
        return functional.linear(self.norm(self.blocks(x)), self.tokens.weight)
