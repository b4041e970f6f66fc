"""The networks of the training benchmark in JAX: functions of parameters, by their names in the Cells.

A network takes parameters, inputs and a dictionary, in which it puts the new moving statistics of batch norms. Images
are `[n, h, w, c]` inside, and weights of convolutions `[h, w, ic, oc]`, as XLA has them on CPUs.
"""

# JAX is not there where types are checked.
# pyright: reportMissingImports=false

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

jax: Any = importlib.import_module("jax")
jnp: Any = jax.numpy
Parameters: TypeAlias = Mapping[str, Any]
Network: TypeAlias = Callable[[Parameters, Any, dict[str, Any]], Any]

BATCH_NORM_EPSILON, MOVING = 1e-5, 0.9


def dense(p: Parameters, name: str, x: Any) -> Any:
    """`x w^T`, and the bias if there is one."""
    y = x @ p[f"{name}.weight"].T
    return y + p[f"{name}.bias"] if f"{name}.bias" in p else y


def convolution(p: Parameters, name: str, x: Any, stride: int = 1, padding: int = 0) -> Any:
    """With the same stride and padding along both axes."""
    layouts, around = ("NHWC", "HWIO", "NHWC"), [(padding, padding)] * 2
    return jax.lax.conv_general_dilated(x, p[f"{name}.weight"], (stride, stride), around, dimension_numbers=layouts)


def max_pool(x: Any, size: int, stride: int, padding: int = 0) -> Any:
    """The largest element of each square. Squares side by side are axes: XLA scatters gradients of other windows."""
    if size == stride and not padding:
        n, h, w, c = x.shape
        return x.reshape(n, h // size, size, w // size, size, c).max((2, 4))
    around = [(0, 0), (padding, padding), (padding, padding), (0, 0)]
    return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, size, size, 1), (1, stride, stride, 1), around)


def batch_norm(p: Parameters, name: str, x: Any, moved: dict[str, Any]) -> Any:
    """By the statistics of the batch, which also move the kept ones."""
    count = x.size // x.shape[-1]
    mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
    for key, new in (("moving_mean", mean), ("moving_variance", variance * (count / (count - 1)))):
        moved[f"{name}.{key}"] = MOVING * p[f"{name}.{key}"] + (1 - MOVING) * new
    scale = p[f"{name}.gamma"] * jax.lax.rsqrt(variance + BATCH_NORM_EPSILON)
    return (x - mean) * scale + p[f"{name}.beta"]


def layer_norm(p: Parameters, name: str, x: Any, epsilon: float) -> Any:
    """Over the last axis."""
    centred = x - x.mean(-1, keepdims=True)
    scale = jax.lax.rsqrt((centred * centred).mean(-1, keepdims=True) + epsilon)
    return centred * scale * p[f"{name}.gamma"] + p[f"{name}.beta"]


def attention(p: Parameters, name: str, x: Any, heads: int, causal: bool) -> Any:
    """Of `[batch, length, width]` on itself."""
    batch, length, width = x.shape
    parts = (dense(p, f"{name}.{part}", x) for part in ("query", "key", "value"))
    q, k, v = (part.reshape(batch, length, heads, width // heads) for part in parts)
    mixed = jax.nn.dot_product_attention(q, k, v, is_causal=causal)
    return dense(p, f"{name}.output", mixed.reshape(batch, length, width))


def feed_forward(p: Parameters, name: str, x: Any) -> Any:
    """Two layers with a GELU between them."""
    return dense(p, f"{name}.outer", jax.nn.gelu(dense(p, f"{name}.inner", x), approximate=False))


def mlp(p: Parameters, x: Any, moved: dict[str, Any]) -> Any:
    """784, 256, 128, 10."""
    del moved
    return dense(p, "fc3", jax.nn.relu(dense(p, "fc2", jax.nn.relu(dense(p, "fc1", x)))))


def lenet5(p: Parameters, x: Any, moved: dict[str, Any]) -> Any:
    """`msc.model_zoo.LeNet5`."""
    x = x.transpose(0, 2, 3, 1)
    x = max_pool(jax.nn.relu(convolution(p, "conv1", x)), 2, 2)
    x = max_pool(jax.nn.relu(convolution(p, "conv2", x)), 2, 2)
    return mlp(p, x.transpose(0, 3, 1, 2).reshape(len(x), -1), moved)


def _block(p: Parameters, name: str, x: Any, stride: int, moved: dict[str, Any]) -> Any:
    y = batch_norm(p, f"{name}.bn1", convolution(p, f"{name}.conv1", x, stride, 1), moved)
    y = batch_norm(p, f"{name}.bn2", convolution(p, f"{name}.conv2", jax.nn.relu(y), 1, 1), moved)
    if f"{name}.down.weight" in p:
        x = batch_norm(p, f"{name}.down_bn", convolution(p, f"{name}.down", x, stride), moved)
    return jax.nn.relu(y + x)


def resnet(strides: Sequence[int], pooled: bool) -> Network:
    """`benchmarks.training.networks.BasicResNet`, with the stride of each block."""
    first = (2, 3) if pooled else (1, 1)

    def network(p: Parameters, x: Any, moved: dict[str, Any]) -> Any:
        x = convolution(p, "conv1", x.transpose(0, 2, 3, 1), *first)
        x = jax.nn.relu(batch_norm(p, "bn1", x, moved))
        x = max_pool(x, 3, 2, 1) if pooled else x
        for place, stride in enumerate(strides):
            x = _block(p, f"layers.{place}", x, stride, moved)
        return dense(p, "fc", x.mean((1, 2)))

    return network


def lstm(p: Parameters, tokens: Any, moved: dict[str, Any]) -> Any:
    """`msc.model_zoo.LstmClassifier`: what inputs add to the gates is one product before the loop over steps."""
    del moved
    bias = p["lstm.bias_ih_l0"] + p["lstm.bias_hh_l0"]
    inputs = p["tokens.embedding_table"][tokens.T] @ p["lstm.weight_ih_l0"].T + bias
    recurrent = p["lstm.weight_hh_l0"].T

    def step(carried: tuple[Any, Any], added: Any) -> tuple[tuple[Any, Any], Any]:
        h, c = carried
        i, f, g, o = jnp.split(added + h @ recurrent, 4, axis=-1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    zero = jnp.zeros((len(tokens), recurrent.shape[0]), jnp.float32)
    return dense(p, "fc", jax.lax.scan(step, (zero, zero), inputs)[1].mean(0))


def gpt(layers: int, heads: int) -> Network:
    """`msc.model_zoo.GptDecoder`, with a row of scores for each token."""

    def network(p: Parameters, tokens: Any, moved: dict[str, Any]) -> Any:
        del moved
        x = p["decoder.tokens.embedding_table"][tokens] + p["decoder.places.embedding_table"][: tokens.shape[1]]
        for name in (f"decoder.layers.{k}" for k in range(layers)):
            x = x + attention(p, f"{name}.attention", layer_norm(p, f"{name}.norm1", x, 1e-5), heads, causal=True)
            x = x + feed_forward(p, f"{name}.feed_forward", layer_norm(p, f"{name}.norm2", x, 1e-5))
        x = layer_norm(p, "decoder.norm", x, 1e-5)
        return dense(p, "decoder.head", x.reshape(-1, x.shape[-1]))

    return network


def bert(heads: int) -> Network:
    """A layer of BERT's encoder with a classifier of the mean state."""

    def network(p: Parameters, x: Any, moved: dict[str, Any]) -> Any:
        del moved
        x = layer_norm(p, "layer.attention_norm", x + attention(p, "layer.attention", x, heads, causal=False), 1e-12)
        x = layer_norm(p, "layer.output_norm", x + feed_forward(p, "layer.feed_forward", x), 1e-12)
        return dense(p, "fc", x.mean(1))

    return network


NETWORKS: dict[str, Network] = {
    "lenet5-b32": lenet5,
    "mlp-b64": mlp,
    "resnet8-b16": resnet((1, 2, 2), pooled=False),
    "resnet18-b4": resnet((1, 1, 2, 1, 2, 1, 2, 1), pooled=True),
    "lstm-b16-s50": lstm,
    "gpt-b4-s64": gpt(6, 6),
    "bert-layer-b4-s128": bert(12),
}
"""By the name of the row."""


def loss_of(network: Network, p: Parameters, x: Any, y: Any) -> tuple[Any, dict[str, Any]]:
    """Cross-entropy of labels, and the new moving statistics."""
    moved: dict[str, Any] = {}
    scores = jax.nn.log_softmax(network(p, x, moved))
    return -jnp.take_along_axis(scores, y[:, None], 1).mean(), moved


def step_of(network: Network, rate: float, momentum: float) -> Callable[..., Any]:
    """A step of momentum, in place: (parameters, statistics, velocities, x, y) to the first three and the loss."""

    def step(p: Parameters, kept: Parameters, velocities: Parameters, x: Any, y: Any) -> Any:
        def loss(trained: Parameters) -> Any:
            return loss_of(network, {**kept, **trained}, x, y)

        (value, moved), gradients = jax.value_and_grad(loss, has_aux=True)(p)
        new = {name: momentum * v + gradients[name] for name, v in velocities.items()}
        return {name: w - rate * new[name] for name, w in p.items()}, moved, new, value

    return jax.jit(step, donate_argnums=(0, 1, 2))


def parameters(values: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """From those of a Cell: weights that are trained, in JAX's layouts, and moving statistics."""
    own = {name: jnp.asarray(v.transpose(2, 3, 1, 0) if v.ndim == 4 else v) for name, v in values.items()}
    kept = {name: v for name, v in own.items() if ".moving_" in name}
    return {name: v for name, v in own.items() if name not in kept}, kept
