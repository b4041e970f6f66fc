"""BERT's encoder (Devlin et al., 2018): BERT-base by default."""

from __future__ import annotations

from msc import nn, ops
from msc.model_zoo.attention import FeedForward, SelfAttention
from msc.ops import Tensor

HIDDEN = -1e9
"""What is added to the scores of tokens that are none."""


class EncoderLayer(nn.Cell):
    """Attention and two layers, each normalised together with what went in."""

    def __init__(self, width: int, heads: int, inner: int) -> None:
        super().__init__()
        self.attention = SelfAttention(width, heads)
        self.attention_norm = nn.LayerNorm((width,), epsilon=1e-12)
        self.feed_forward = FeedForward(width, inner)
        self.output_norm = nn.LayerNorm((width,), epsilon=1e-12)

    def construct(self, x: Tensor, mask: Tensor) -> Tensor:
        x = self.attention_norm(x + self.attention(x, mask))
        return self.output_norm(x + self.feed_forward(x))


class BertModel(nn.Cell):
    """Tokens, their segments and which of them count, `[batch, length]` each, to states `[batch, length, width]`.

    A second result is the pooled first state, `[batch, width]`.
    """

    def __init__(
        self,
        vocabulary: int = 30522,
        width: int = 768,
        layers: int = 12,
        heads: int = 12,
        inner: int = 3072,
        positions: int = 512,
    ) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(positions, width)
        self.segments = nn.Embedding(2, width)
        self.norm = nn.LayerNorm((width,), epsilon=1e-12)
        self.layers = nn.CellList([EncoderLayer(width, heads, inner) for _ in range(layers)])
        self.pooler = nn.Dense(width, width)
        self.tanh = nn.Tanh()

    def construct(self, tokens: Tensor, segments: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
        batch, length = tokens.shape
        places = ops.arange(length)
        x = self.norm(self.tokens(tokens) + self.segments(segments) + self.positions(places))
        mask = ops.reshape((1 - ops.cast(counts, x.dtype)) * HIDDEN, (batch, 1, 1, length))
        for layer in self.layers:
            x = layer(x, mask)
        return x, self.tanh(self.pooler(ops.reshape(x[:, 0:1], (batch, x.shape[2]))))
