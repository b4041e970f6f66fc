"""A decoder in the manner of GPT-2 (Radford et al., 2019), whole sequences at once or a token at a time."""

from __future__ import annotations

import numpy as np

from msc import nn, ops
from msc.frontend.parameter import Parameter
from msc.model_zoo.attention import FeedForward, SelfAttention
from msc.ops import Tensor

HIDDEN = -1e9
"""What is added to the scores of tokens that come later."""


class DecoderLayer(nn.Cell):
    """Attention and two layers, each of the normalised input and added to it."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm((width,), epsilon=1e-5)
        self.attention = SelfAttention(width, heads)
        self.norm2 = nn.LayerNorm((width,), epsilon=1e-5)
        self.feed_forward = FeedForward(width, 4 * width)

    def construct(self, x: Tensor, mask: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x), mask)
        return x + self.feed_forward(self.norm2(x))


class GptDecoder(nn.Cell):
    """Tokens `[batch, length]` to scores of the next one `[batch, length, vocabulary]`."""

    def __init__(
        self, vocabulary: int = 50257, width: int = 768, layers: int = 12, heads: int = 12, positions: int = 1024
    ) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.places = nn.Embedding(positions, width)
        self.layers = nn.CellList([DecoderLayer(width, heads) for _ in range(layers)])
        self.norm = nn.LayerNorm((width,), epsilon=1e-5)
        self.head = nn.Dense(width, vocabulary, has_bias=False)

    def construct(self, tokens: Tensor) -> Tensor:
        length = tokens.shape[1]
        x = self.tokens(tokens) + self.places(ops.arange(length))
        mask = Tensor(np.triu(np.full((length, length), HIDDEN, np.float32), 1))
        for layer in self.layers:
            x = layer(x, mask)
        return self.head(self.norm(x))


class GptStep(nn.Cell):
    """One token `[1, 1]` at a `place` (rank 0) to scores of the next `[1, vocabulary]`, with the decoder's weights.

    Keys and values of the tokens before are Parameters, which each call updates: states of the compiled model.
    """

    def __init__(self, decoder: GptDecoder, length: int) -> None:
        super().__init__()
        self.decoder = decoder
        attention = decoder.layers[0].attention
        shape = (len(decoder.layers), 1, attention.heads, length, attention.size)
        self.keys = Parameter(Tensor(np.zeros(shape, np.float32)), name="keys")
        self.values = Parameter(Tensor(np.zeros(shape, np.float32)), name="values")
        self.length = length

    def construct(self, token: Tensor, place: Tensor) -> Tensor:
        decoder = self.decoder
        steps = ops.arange(self.length)
        is_here = ops.reshape(ops.equal(steps, place), (1, 1, self.length, 1))
        mask = ops.select(steps <= place, ops.zeros(self.length), ops.zeros(self.length) + HIDDEN)
        x = decoder.tokens(token) + decoder.places(ops.reshape(place, (1, 1)))
        keys: list[Tensor] = []
        values: list[Tensor] = []
        for k in range(len(decoder.layers)):
            layer = decoder.layers[k]
            attention, y = layer.attention, layer.norm1(x)
            key = ops.where(is_here, attention.split(attention.key(y)), self.keys[k])
            value = ops.where(is_here, attention.split(attention.value(y)), self.values[k])
            x = x + attention.attend(attention.split(attention.query(y)), key, value, mask)
            x = x + layer.feed_forward(layer.norm2(x))
            keys.append(key)
            values.append(value)
        self.keys = ops.stack(keys, 0)
        self.values = ops.stack(values, 0)
        return ops.reshape(decoder.head(decoder.norm(x)), (1, -1))
