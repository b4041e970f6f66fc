"""A small Llama against its formulas in NumPy, and a token at a time against whole rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from msc import Tensor
from msc.dialects.arrays import Array
from msc.model_zoo import Llama, LlamaConfig, LlamaGenerator
from msc.model_zoo.llama import Sampling
from tests.unit.model_zoo.small_networks import tokens, with_random_weights

SIZES = LlamaConfig(30, 16, 24, 2, 4, 2, rope_theta=500.0)


def reference(net: Llama, row: Array) -> Array:
    """Scores `[length, vocabulary]` in f64, by the formulas of the paper, a head at a time."""
    named = net.parameters_dict().items()  # a step that has the network puts its own name in front
    w: dict[str, Any] = {name.removeprefix("llama."): p.asnumpy().astype(np.float64) for name, p in named}
    c, length = net.config, len(row)
    x = w["model.embed_tokens.embedding_table"][row]

    def norm(x: Any, name: str) -> Any:
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + c.rms_norm_eps) * w[f"{name}.weight"]

    def turn(x: Any) -> Any:
        half = c.head_size // 2
        angle = np.outer(np.arange(length), c.rope_theta ** (-np.arange(half) / half))
        whole = (x[:, :half] + 1j * x[:, half:]) * np.exp(1j * angle)
        return np.concatenate((whole.real, whole.imag), 1)

    for k in range(c.num_hidden_layers):
        at, heads = f"model.layers.{k}", list[Any]()
        y = norm(x, f"{at}.input_layernorm")
        q, key, v = (y @ w[f"{at}.self_attn.{name}_proj.weight"].T for name in "qkv")
        for head in range(c.num_attention_heads):
            shared = head * c.key_heads // c.num_attention_heads
            mine, its = (slice(n * c.head_size, (n + 1) * c.head_size) for n in (head, shared))
            scores = turn(q[:, mine]) @ turn(key[:, its]).T / np.sqrt(c.head_size)
            scores = np.where(np.tri(length, dtype=bool), scores, -np.inf)
            weights = np.exp(scores - scores.max(-1, keepdims=True))
            heads.append(weights / weights.sum(-1, keepdims=True) @ v[:, its])
        x = x + np.concatenate(heads, 1) @ w[f"{at}.self_attn.o_proj.weight"].T
        y = norm(x, f"{at}.post_attention_layernorm")
        gate, up = (y @ w[f"{at}.mlp.{name}_proj.weight"].T for name in ("gate", "up"))
        x = x + (gate / (1 + np.exp(-gate)) * up) @ w[f"{at}.mlp.down_proj.weight"].T
    return norm(x, "model.norm") @ w["lm_head.weight"].T


@pytest.fixture(scope="module")
def llama() -> Llama:
    net = Llama(SIZES)
    with_random_weights(net)
    return net


def test_scores_are_those_of_the_formulas(llama: Llama) -> None:
    row = tokens(1, 7)
    np.testing.assert_allclose(llama(Tensor(row)).asnumpy()[0], reference(llama, row[0]), rtol=1e-4, atol=1e-4)


def test_generated_tokens_are_those_of_whole_rows(llama: Llama) -> None:
    generator = LlamaGenerator(llama, 16, 4)
    for count in (1, 4, 7):
        row = [int(token) for token in tokens(count)]
        expected = list(row)
        for _ in range(4):
            expected.append(int(reference(llama, np.array(expected))[-1].argmax()))
        assert list(generator.generate(row, 4)) == expected[count:]
    drawn = [list(generator.generate([3, 5], 6, temperature=2.0, seed=seed)) for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert len(list(generator.generate([3, 5], 40))) == 15  # what there is room for, and one that is not taken in
    first = drawn[0][0]
    assert list(generator.generate([3, 5], 6, temperature=2.0, seed=1, stop=[first])) == [first]


def test_tokens_are_drawn_among_the_likeliest() -> None:
    rng = np.random.default_rng(0)
    scores = np.log(np.array([0.1, 0.5, 0.15, 0.25], np.float32))
    for sampling, among in ((Sampling(1.0, 2), {1, 3}), (Sampling(1.0, 0, 0.74), {1, 3}), (Sampling(1.0, 0, 0.5), {1})):
        assert {sampling.chosen(scores, rng) for _ in range(60)} == among
    counts = np.bincount([Sampling(1.0).chosen(scores, rng) for _ in range(4000)])
    np.testing.assert_allclose(counts / 4000, np.exp(scores), atol=0.04)
