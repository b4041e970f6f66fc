"""The zoo's networks with PyTorch's operators, as functions of weights and inputs."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, TypeAlias

torch: Any = importlib.import_module("torch")
F: Any = torch.nn.functional

Weights: TypeAlias = Callable[[str], Any]
"""From the name of a parameter to its value."""


def lenet(p: Weights, x: Any) -> Any:
    x = F.max_pool2d(F.relu(F.conv2d(x, p("conv1.weight"))), 2)
    x = F.max_pool2d(F.relu(F.conv2d(x, p("conv2.weight"))), 2).flatten(1)
    for name in ("fc1", "fc2"):
        x = F.relu(F.linear(x, p(f"{name}.weight"), p(f"{name}.bias")))
    return F.linear(x, p("fc3.weight"), p("fc3.bias"))


def norm(p: Weights, name: str, x: Any) -> Any:
    """By the running statistics, or, where there are none, as in training, by those of the batch."""
    mean, variance = p(f"{name}.moving_mean"), p(f"{name}.moving_variance")
    return F.batch_norm(x, mean, variance, p(f"{name}.gamma"), p(f"{name}.beta"), mean is None, eps=1e-5)


def resnet(p: Weights, x: Any) -> Any:
    x = F.relu(norm(p, "bn1", F.conv2d(x, p("conv1.weight"), stride=2, padding=3)))
    x = F.max_pool2d(x, 3, 2, 1)
    for k, stride in enumerate((1, 2, 1)):
        at = f"layers.{k}"
        y = F.relu(norm(p, f"{at}.bn1", F.conv2d(x, p(f"{at}.conv1.weight"))))
        y = F.relu(norm(p, f"{at}.bn2", F.conv2d(y, p(f"{at}.conv2.weight"), stride=stride, padding=1)))
        y = norm(p, f"{at}.bn3", F.conv2d(y, p(f"{at}.conv3.weight")))
        if k < 2:
            x = norm(p, f"{at}.down_bn", F.conv2d(x, p(f"{at}.down.weight"), stride=stride))
        x = F.relu(x + y)
    return F.linear(x.mean((2, 3)), p("fc.weight"), p("fc.bias"))


def mobilenet(p: Weights, x: Any) -> Any:
    def block(at: str, x: Any, stride: int = 1, group: int = 1) -> Any:
        weight = p(f"{at}.0.weight")
        y = F.conv2d(x, weight, stride=stride, padding=weight.shape[-1] // 2, groups=group)
        return F.relu6(norm(p, f"{at}.1", y))

    x = block("features.0", x, 2)
    x = x + norm(p, "features.1.conv.2", F.conv2d(block("features.1.conv.0", x, 1, 8), p("features.1.conv.1.weight")))
    for k, stride in ((2, 2), (3, 1)):
        at = f"features.{k}.conv"
        y = block(f"{at}.0", x)
        y = block(f"{at}.1", y, stride, y.shape[1])
        y = norm(p, f"{at}.3", F.conv2d(y, p(f"{at}.2.weight")))
        x = y if k == 2 else x + y
    x = block("features.4", x)
    return F.linear(x.mean((2, 3)), p("classifier.weight"), p("classifier.bias"))


def heads_of(p: Weights, at: str, x: Any, mask: Any) -> Any:
    batch, length, width = x.shape
    parts = [F.linear(x, p(f"{at}.{n}.weight"), p(f"{at}.{n}.bias")) for n in ("query", "key", "value")]
    q, k, v = (part.view(batch, length, 2, width // 2).transpose(1, 2) for part in parts)
    y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    return F.linear(y.transpose(1, 2).reshape(batch, length, width), p(f"{at}.output.weight"), p(f"{at}.output.bias"))


def layer_norm(p: Weights, name: str, x: Any, eps: float) -> Any:
    return F.layer_norm(x, x.shape[-1:], p(f"{name}.gamma"), p(f"{name}.beta"), eps)


def two_layers(p: Weights, at: str, x: Any) -> Any:
    hidden = F.gelu(F.linear(x, p(f"{at}.inner.weight"), p(f"{at}.inner.bias")))
    return F.linear(hidden, p(f"{at}.outer.weight"), p(f"{at}.outer.bias"))


def bert(p: Weights, tokens: Any, segments: Any, counts: Any) -> Any:
    places = torch.arange(tokens.shape[1])
    x = F.embedding(tokens, p("tokens.embedding_table")) + F.embedding(segments, p("segments.embedding_table"))
    x = layer_norm(p, "norm", x + F.embedding(places, p("positions.embedding_table")), 1e-12)
    mask = ((1 - counts.float()) * -1e9)[:, None, None, :]
    for k in range(2):
        at = f"layers.{k}"
        x = layer_norm(p, f"{at}.attention_norm", x + heads_of(p, f"{at}.attention", x, mask), 1e-12)
        x = layer_norm(p, f"{at}.output_norm", x + two_layers(p, f"{at}.feed_forward", x), 1e-12)
    return x, torch.tanh(F.linear(x[:, 0], p("pooler.weight"), p("pooler.bias")))


def gpt(p: Weights, tokens: Any) -> Any:
    length = tokens.shape[1]
    x = F.embedding(tokens, p("tokens.embedding_table")) + p("places.embedding_table")[:length]
    mask = torch.full((length, length), float("-inf")).triu(1)
    for k in range(2):
        at = f"layers.{k}"
        x = x + heads_of(p, f"{at}.attention", layer_norm(p, f"{at}.norm1", x, 1e-5), mask)
        x = x + two_layers(p, f"{at}.feed_forward", layer_norm(p, f"{at}.norm2", x, 1e-5))
    return F.linear(layer_norm(p, "norm", x, 1e-5), p("head.weight"))


def lstm(p: Weights, tokens: Any) -> Any:
    cell = torch.nn.LSTM(8, 6, batch_first=True, bidirectional=True)
    weights = {name: p(f"lstm.{name}") for name in cell.state_dict()}
    states, _ = torch.func.functional_call(cell, weights, (F.embedding(tokens, p("tokens.embedding_table")),))
    return F.linear(states.mean(1), p("fc.weight"), p("fc.bias"))


def unet(p: Weights, x: Any) -> Any:
    def twice(at: str, x: Any) -> Any:
        for k in (0, 3):
            x = F.relu(norm(p, f"{at}.{k + 1}", F.conv2d(x, p(f"{at}.{k}.weight"), padding=1)))
        return x

    seen = [twice("down.0", x)]
    for k in (1, 2):
        seen.append(twice(f"down.{k}", F.max_pool2d(seen[-1], 2)))
    x = seen[2]
    for k in range(2):
        up = F.conv_transpose2d(x, p(f"up.{k}.weight"), p(f"up.{k}.bias"), stride=2)
        x = twice(f"merge.{k}", torch.cat((seen[1 - k], up), 1))
    return F.conv2d(x, p("last.weight"), p("last.bias"))


REFERENCES: dict[str, Callable[..., Any]] = {
    "lenet": lenet,
    "resnet": resnet,
    "mobilenet": mobilenet,
    "bert": bert,
    "gpt": gpt,
    "lstm": lstm,
    "unet": unet,
}
