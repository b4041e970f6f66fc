"""A decoder in the manner of Llama (Touvron et al., 2023), with weights named as Hugging Face names them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from importlib import import_module
from typing import Any

import numpy as np

from msc import nn, ops
from msc.dialects.arrays import Array
from msc.frontend.parameter import Parameter
from msc.ops import Tensor

_COMPILER = ("msc.driver.api", "compile")
"""It stands above, and is found by name."""
HIDDEN = -1e9
"""What is added to the scores of places that a token does not see."""


@dataclass(frozen=True)
class LlamaConfig:
    """The sizes, by the names of Hugging Face's `config.json`."""

    vocab_size: int = 32000
    hidden_size: int = 4096
    intermediate_size: int = 11008
    num_hidden_layers: int = 32
    num_attention_heads: int = 32
    num_key_value_heads: int | None = None
    head_dim: int | None = None
    rms_norm_eps: float = 1e-6
    rope_theta: float = 10000.0
    tie_word_embeddings: bool = False
    rope_factors: tuple[float, ...] = ()
    """What each frequency of the turns is divided by; empty for 1."""

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> LlamaConfig:
        """From the contents of a `config.json`; what says nothing here is left out."""
        known = {each.name for each in fields(cls)}
        return cls(**{name: value for name, value in config.items() if name in known})

    @property
    def key_heads(self) -> int:
        """Heads of keys and values, each of which serves as many heads of queries."""
        return self.num_key_value_heads or self.num_attention_heads

    @property
    def head_size(self) -> int:
        """Numbers of a head."""
        return self.head_dim or self.hidden_size // self.num_attention_heads

    def frequencies(self) -> Array:
        """The angles by which each pair of numbers turns from one place to the next."""
        size = self.head_size
        made = self.rope_theta ** (-np.arange(0, size, 2) / size)
        return made / np.array(self.rope_factors) if self.rope_factors else made


class LlamaAttention(nn.Cell):
    """Attention of `[1, count, width]` over keys and values of all places, with rotated queries and keys."""

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        self.heads, self.key_heads, self.size = config.num_attention_heads, config.key_heads, config.head_size
        width, inner, narrow = config.hidden_size, self.heads * self.size, self.key_heads * self.size
        self.q_proj = nn.Dense(width, inner, has_bias=False)
        self.k_proj = nn.Dense(width, narrow, has_bias=False)
        self.v_proj = nn.Dense(width, narrow, has_bias=False)
        self.o_proj = nn.Dense(inner, width, has_bias=False)

    def split(self, x: Tensor) -> Tensor:
        """`[batch, count, heads * size]` as `[batch, heads, count, size]`."""
        batch, count, width = x.shape
        return ops.transpose(ops.reshape(x, (batch, count, width // self.size, self.size)), (0, 2, 1, 3))

    def attend(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> Tensor:
        """Heads of queries in groups, a group to each head of keys and values."""
        batch, _, count, size = query.shape
        group = self.heads // self.key_heads
        grouped = ops.reshape(query, (batch, self.key_heads, group * count, size))
        scores = ops.matmul(grouped, ops.transpose(key, (0, 1, 3, 2))) * (1 / math.sqrt(size))
        scores = ops.reshape(scores, (batch, self.heads, count, key.shape[2])) + mask
        weights = ops.reshape(ops.softmax(scores, -1), (batch, self.key_heads, group * count, key.shape[2]))
        mixed = ops.reshape(ops.matmul(weights, value), (batch, self.heads, count, size))
        return self.o_proj(ops.reshape(ops.transpose(mixed, (0, 2, 1, 3)), (batch, count, self.heads * size)))


class LlamaMLP(nn.Cell):
    """SwiGLU: down(silu(gate(x)) * up(x))."""

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        self.gate_proj = nn.Dense(config.hidden_size, config.intermediate_size, has_bias=False)
        self.up_proj = nn.Dense(config.hidden_size, config.intermediate_size, has_bias=False)
        self.down_proj = nn.Dense(config.intermediate_size, config.hidden_size, has_bias=False)

    def construct(self, x: Tensor) -> Tensor:
        return self.down_proj(ops.silu(self.gate_proj(x)) * self.up_proj(x))


class LlamaLayer(nn.Cell):
    """Attention and SwiGLU, each of the normalised input and added to it."""

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        self.self_attn = LlamaAttention(config)
        self.mlp = LlamaMLP(config)
        self.input_layernorm = nn.RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.post_attention_layernorm = nn.RMSNorm(config.hidden_size, config.rms_norm_eps)


class LlamaModel(nn.Cell):
    """Tokens to features: what Hugging Face's names have under `model.`."""

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.CellList([LlamaLayer(config) for _ in range(config.num_hidden_layers)])
        self.norm = nn.RMSNorm(config.hidden_size, config.rms_norm_eps)


class Llama(nn.Cell):
    """Tokens `[batch, length]` to scores of the next one `[batch, length, vocabulary]`."""

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        self.config = config
        self.model = LlamaModel(config)
        self.lm_head = nn.Dense(config.hidden_size, config.vocab_size, has_bias=False)

    def construct(self, tokens: Tensor) -> Tensor:
        length = tokens.shape[1]
        turns = [Tensor(table) for table in turning_tables(self.config, length)]
        mask = Tensor(np.triu(np.full((length, length), HIDDEN, np.float32), 1))
        x = self.model.embed_tokens(tokens)
        for layer in self.model.layers:
            attention, y = layer.self_attn, layer.input_layernorm(x)
            query, key = (turned(attention.split(f(y)), *turns) for f in (attention.q_proj, attention.k_proj))
            x = x + attention.attend(query, key, attention.split(attention.v_proj(y)), mask)
            x = x + layer.mlp(layer.post_attention_layernorm(x))
        return self.lm_head(self.model.norm(x))


class LayerCache(nn.Cell):
    """Keys and values of one layer at all places: states of the compiled model."""

    def __init__(self, config: LlamaConfig, length: int) -> None:
        super().__init__()
        shape = (1, config.key_heads, length, config.head_size)
        self.keys = Parameter(Tensor(np.zeros(shape, np.float32)), name="keys", requires_grad=False)
        self.values = Parameter(Tensor(np.zeros(shape, np.float32)), name="values", requires_grad=False)

    def construct(self, key: Tensor, value: Tensor, row: Tensor, is_new: Tensor) -> tuple[Tensor, Tensor]:
        """What is known after the places that are `is_new` have taken the `row` of `key` and `value`."""
        keys = ops.where(is_new, ops.gather(key, row, 2), self.keys)
        values = ops.where(is_new, ops.gather(value, row, 2), self.values)
        self.keys = keys
        self.values = values
        return keys, values


class LlamaStep(nn.Cell):
    """Tokens `[1, count]` at `place` and behind to scores `[1, vocabulary]` of what follows number `last` of them.

    `place` and `last` are int32 of rank 0; `length` places have room. Tokens behind `last` fill up: the next call
    starts at their places.
    """

    def __init__(self, llama: Llama, length: int) -> None:
        super().__init__()
        self.llama, self.length = llama, length
        self.caches = nn.CellList([LayerCache(llama.config, length) for _ in llama.model.layers])

    def construct(self, tokens: Tensor, place: Tensor, last: Tensor) -> Tensor:
        llama, count = self.llama, tokens.shape[1]
        steps = ops.arange(self.length, dtype=place.dtype)
        here = ops.arange(count, dtype=place.dtype) + place
        row = ops.minimum(ops.maximum(steps - place, 0), count - 1)
        is_new = ops.logical_and(steps >= place, steps < place + count)
        is_new = ops.reshape(is_new, (1, 1, self.length, 1))
        seen = ops.reshape(steps, (1, -1)) <= ops.reshape(here, (-1, 1))
        mask = ops.select(seen, ops.zeros((count, self.length)), ops.zeros((count, self.length)) + HIDDEN)
        at = ops.minimum(here, self.length - 1)
        turns = [ops.gather(Tensor(table), at, 0) for table in turning_tables(llama.config, self.length)]
        x = llama.model.embed_tokens(tokens)
        for k in range(len(llama.model.layers)):
            layer = llama.model.layers[k]
            attention, y = layer.self_attn, layer.input_layernorm(x)
            query, key = (turned(attention.split(f(y)), *turns) for f in (attention.q_proj, attention.k_proj))
            keys, values = self.caches[k](key, attention.split(attention.v_proj(y)), row, is_new)
            x = x + attention.attend(query, keys, values, mask)
            x = x + layer.mlp(layer.post_attention_layernorm(x))
        x = ops.gather(x, ops.reshape(last, (1,)), 1)
        return ops.reshape(llama.lm_head(llama.model.norm(x)), (1, -1))


def turning_tables(config: LlamaConfig, length: int) -> tuple[Array, Array]:
    """Cosines and sines `[length, size]` by which places turn keys and queries: both halves have the same angles."""
    angles = np.tile(np.arange(length)[:, None] * config.frequencies(), 2)
    return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)


def turned(x: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
    """Rotary embedding of `[batch, heads, count, size]`: number k of the first half with number k of the second."""
    half = x.shape[-1] // 2
    swapped = ops.cat((-x[:, :, :, half:], x[:, :, :, :half]), -1)
    return x * cosines + swapped * sines


@dataclass(frozen=True)
class Sampling:
    """How the next token is chosen: the likeliest for a `temperature` of 0, else drawn.

    Drawn among the `top_k` likeliest (0: all), and of these among the fewest whose probabilities reach `top_p`.
    """

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0

    def chosen(self, scores: Array, rng: np.random.Generator) -> int:
        """The token for scores of one row."""
        if self.temperature <= 0:
            return int(scores.argmax())
        order = np.argsort(-scores, kind="stable")[: self.top_k or None]
        weights = np.exp((scores[order] - scores[order[0]]).astype(np.float64) / self.temperature)
        weights /= weights.sum()
        kept = int(np.searchsorted(np.cumsum(weights), self.top_p - 1e-12)) + 1
        weights = weights[:kept] / weights[:kept].sum()
        return int(order[rng.choice(len(weights), p=weights)])


class LlamaGenerator:
    """A Llama compiled to take tokens in: `chunk` of a prompt at a time, then one after another."""

    def __init__(self, llama: Llama, length: int = 512, chunk: int = 32, **options: Any) -> None:
        compile_ = getattr(import_module(_COMPILER[0]), _COMPILER[1])
        self.length, self.chunk = length, min(chunk, length)
        step, number = LlamaStep(llama, length), Tensor(np.array(0, np.int32))
        sizes = {1, self.chunk}
        self._steps = {
            size: compile_(step, Tensor(np.zeros((1, size), np.int32)), number, number, **options) for size in sizes
        }
        self._shapes = [tuple(cache.shape) for each in step.caches for cache in (each.keys, each.values)]

    def generate(
        self,
        prompt: Sequence[int],
        max_new_tokens: int = 64,
        *,
        temperature: float = 0.0,
        top_k: int = 0,
        top_p: float = 1.0,
        seed: int = 0,
        stop: Sequence[int] = (),
    ) -> Iterator[int]:
        """The tokens that follow a prompt, one after another, up to one of `stop`."""
        states = [np.zeros(shape, np.float32) for shape in self._shapes]
        sampling, rng = Sampling(temperature, top_k, top_p), np.random.default_rng(seed)
        place, tokens = 0, [int(token) for token in prompt] or [0]
        for _ in range(max_new_tokens):
            if place + len(tokens) > self.length:
                return
            token = sampling.chosen(self._scores(tokens, place, states), rng)
            place += len(tokens)
            yield token
            if token in stop:
                return
            tokens = [token]

    def _scores(self, tokens: Sequence[int], place: int, states: Sequence[Array]) -> Array:
        """The scores `[vocabulary]` of what follows tokens at `place`; the states take these in."""
        size = 1 if len(tokens) == 1 else self.chunk
        row = np.zeros((1, size), np.int32)
        taken, rest = tokens[:size], tokens[size:]
        row[0, : len(taken)] = taken
        numbers = (np.array(place, np.int32), np.array(len(taken) - 1, np.int32))
        scores: Array = self._steps[size].results(row, *numbers, *states)[0]
        return self._scores(rest, place + len(taken), states) if rest else scores[0]
