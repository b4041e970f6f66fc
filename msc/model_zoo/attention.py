"""What BERT and GPT share: attention of several heads, and the two layers behind it."""

from __future__ import annotations

import math

from msc import nn, ops
from msc.ops import Tensor


class FeedForward(nn.Cell):
    """Two layers with a GELU between them."""

    def __init__(self, width: int, inner: int) -> None:
        super().__init__()
        self.inner = nn.Dense(width, inner)
        self.outer = nn.Dense(inner, width)
        self.gelu = nn.GELU(approximate=False)

    def construct(self, x: Tensor) -> Tensor:
        return self.outer(self.gelu(self.inner(x)))


class SelfAttention(nn.Cell):
    """Attention of `[batch, length, width]` on itself; `mask` is added to the scores."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads, self.size = heads, width // heads
        self.query = nn.Dense(width, width)
        self.key = nn.Dense(width, width)
        self.value = nn.Dense(width, width)
        self.output = nn.Dense(width, width)

    def split(self, x: Tensor) -> Tensor:
        """`[batch, length, width]` as `[batch, heads, length, size]`."""
        batch, length, _ = x.shape
        return ops.transpose(ops.reshape(x, (batch, length, self.heads, self.size)), (0, 2, 1, 3))

    def attend(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> Tensor:
        """The output for queries over keys and values, all split into heads."""
        batch, _, length, _ = query.shape
        scores = ops.matmul(query, ops.transpose(key, (0, 1, 3, 2))) * (1 / math.sqrt(self.size)) + mask
        mixed = ops.matmul(ops.softmax(scores, -1), value)
        return self.output(ops.reshape(ops.transpose(mixed, (0, 2, 1, 3)), (batch, length, self.heads * self.size)))

    def construct(self, x: Tensor, mask: Tensor) -> Tensor:
        return self.attend(self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x)), mask)
