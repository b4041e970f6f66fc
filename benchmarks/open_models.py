"""Models whose sizes a call decides, each measured at several sizes of its range."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np

from benchmarks.model import SEED, Array, GraphModel
from benchmarks.onnx_graph import OnnxGraph

Shape: TypeAlias = Sequence[int | str]
"""The name of a dimension that a call decides, or its size."""
Network: TypeAlias = Callable[[OnnxGraph], str]


class OpenModel(GraphModel):
    """A network whose file names dimensions, at some of their sizes; `dims` are the ranges that it is compiled for."""

    def __init__(
        self,
        name: str,
        network: Network,
        shapes: Mapping[str, Shape],
        dims: Mapping[str, tuple[int, int]],
        sizes: Mapping[str, int],
    ) -> None:
        self.name = f"{name}@{','.join(f'{dim}={size}' for dim, size in sizes.items())}"
        self.dims, self.sizes, self._network, self._shapes = dims, sizes, network, shapes
        self.inputs = {key: tuple(self._size(dim) for dim in shape) for key, shape in shapes.items()}

    def _size(self, dim: int | str) -> int:
        return dim if isinstance(dim, int) else self.sizes[dim]

    def nodes(self, graph: OnnxGraph) -> str:
        return self._network(graph)

    def example(self) -> dict[str, Array]:
        """Normally distributed: negative numbers too."""
        generator = np.random.default_rng(SEED)
        return {key: generator.standard_normal(shape, np.float32) for key, shape in self.inputs.items()}

    def _write(self, path: Path) -> None:
        path.write_bytes(self.graph.finish("open", self._shapes))

    @property
    def multiply_adds(self) -> int:
        """Not counted: the file does not say the sizes."""
        return 0


def at(
    name: str,
    network: Network,
    shapes: Mapping[str, Shape],
    dims: Mapping[str, tuple[int, int]],
    *sizes: Mapping[str, int],
) -> list[OpenModel]:
    """A model at each of these sizes."""
    return [OpenModel(name, network, shapes, dims, each) for each in sizes]


def over(name: str, *sizes: int) -> list[dict[str, int]]:
    """Sizes of one dimension."""
    return [{name: size} for size in sizes]


def _softmax(graph: OnnxGraph) -> str:
    return graph.op("Softmax", "a", axis=-1)


def _matmul(graph: OnnxGraph) -> str:
    return graph.op("MatMul", "a", "b")


def _attention(graph: OnnxGraph) -> str:
    return _attended(graph, "a", "a", "a", 16)


def _attended(graph: OnnxGraph, queries: str, keys: str, values: str, depth: int) -> str:
    rank = 4 if queries != keys else 3
    swapped = graph.op("Transpose", keys, perm=[*range(rank - 2), rank - 1, rank - 2])
    scores = graph.op("MatMul", graph.op("Mul", queries, graph.constant("scale", depth**-0.5)), swapped)
    return graph.op("MatMul", graph.op("Softmax", scores, axis=-1), values)


def _mean(graph: OnnxGraph) -> str:
    return graph.op("ReduceMean", "a", graph.integers("axes", -1), keepdims=0)


def _swish(graph: OnnxGraph) -> str:
    return graph.op("Mul", "a", graph.op("Sigmoid", "a"))


def _convolution(graph: OnnxGraph, x: str, inputs: int, outputs: int, kernel: int = 3, stride: int = 1) -> str:
    weight = graph.weight(f"w{len(graph.nodes)}", outputs, inputs, kernel, kernel)
    bias = graph.weight(f"b{len(graph.nodes)}", outputs, fan_in=200)
    return graph.op("Conv", x, weight, bias, pads=[kernel // 2] * 4, strides=[stride] * 2)


def _conv(inputs: int, outputs: int) -> Network:
    return lambda graph: graph.op("Relu", _convolution(graph, "a", inputs, outputs))


def _product(graph: OnnxGraph, x: str, inputs: int, outputs: int) -> str:
    weight = graph.weight(f"w{len(graph.nodes)}", inputs, outputs, fan_in=inputs)
    return graph.op("Add", graph.op("MatMul", x, weight), graph.weight(f"b{len(graph.nodes)}", outputs, fan_in=200))


def _dense(inputs: int, outputs: int) -> Network:
    return lambda graph: _product(graph, "a", inputs, outputs)


def _two_convolutions(graph: OnnxGraph) -> str:
    first = graph.op("Relu", _convolution(graph, "a", 3, 16, stride=2))
    return graph.op("Relu", _convolution(graph, first, 16, 32))


def _normalised(graph: OnnxGraph, x: str, size: int) -> str:
    gamma, beta = (graph.weight(f"{part}{len(graph.nodes)}", size, fan_in=2) for part in ("gamma", "beta"))
    return graph.op("LayerNormalization", x, gamma, beta, axis=-1, epsilon=1e-5)


def _encoder(layers: int, size: int, heads: int, hidden: int) -> Network:
    """Post-norm transformer layers over `a: [batch, sequence, size]`."""

    def network(graph: OnnxGraph) -> str:
        x = "a"
        split = graph.integers("split", 0, 0, heads, size // heads)
        joined = graph.integers("joined", 0, 0, size)
        for _ in range(layers):
            q, k, v = (
                graph.op("Transpose", graph.op("Reshape", _product(graph, x, size, size), split), perm=[0, 2, 1, 3])
                for _ in range(3)
            )
            mixed = graph.op("Transpose", _attended(graph, q, k, v, size // heads), perm=[0, 2, 1, 3])
            attention = _product(graph, graph.op("Reshape", mixed, joined), size, size)
            x = _normalised(graph, graph.op("Add", x, attention), size)
            inner = graph.op("Relu", _product(graph, x, size, hidden))
            x = _normalised(graph, graph.op("Add", x, _product(graph, inner, hidden, size)), size)
        return x

    return network


def _cached_attention(depth: int) -> Network:
    """A step of a decoder: queries, keys and values of new tokens, and keys and values of those before."""

    def network(graph: OnnxGraph) -> str:
        keys = graph.op("Concat", "past_k", "k", axis=2)
        values = graph.op("Concat", "past_v", "v", axis=2)
        return _attended(graph, "q", keys, values, depth)

    return network


def _classifier(graph: OnnxGraph) -> str:
    """A CNN of any number of images of any size."""
    x, channels = "a", 3
    for number, outputs in enumerate((16, 32, 64)):
        x = graph.op("Relu", _convolution(graph, x, channels, outputs))
        x = graph.op("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2]) if number < 2 else x
        channels = outputs
    pooled = graph.op("Flatten", graph.op("GlobalAveragePool", x), axis=1)
    return graph.op("Gemm", pooled, graph.weight("head", 10, 64), graph.weight("bias", 10, fan_in=2), transB=1)


def _recogniser(graph: OnnxGraph) -> str:
    """Text lines of 32 rows and any width to a distribution of characters for every fourth column."""
    x = graph.op("Relu", _convolution(graph, "a", 1, 16))
    x = graph.op("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    x = graph.op("Relu", _convolution(graph, x, 16, 32))
    x = graph.op("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    x = graph.op("Relu", _convolution(graph, x, 32, 64))
    x = graph.op("ReduceMean", x, graph.integers("rows", 2), keepdims=0)
    x = graph.op("Transpose", x, perm=[0, 2, 1])
    return graph.op("Softmax", _product(graph, x, 64, 96), axis=-1)


def _lstm(features: int, hidden: int) -> Network:
    """A recurrent layer over any number of steps."""

    def network(graph: OnnxGraph) -> str:
        inputs = graph.weight("W", 1, 4 * hidden, features, fan_in=features)
        state = graph.weight("R", 1, 4 * hidden, hidden, fan_in=hidden)
        return graph.op("LSTM", "a", inputs, state, graph.weight("B", 1, 8 * hidden, fan_in=200), hidden_size=hidden)

    return network


S, LINE = {"s": (2, 128)}, {"s": (2, 2000)}
_ROW = {"s": (1, 128)}
_BATCH = {"b": (1, 64)}

OPEN_MODELS: tuple[OpenModel, ...] = (
    *at("softmax", _softmax, {"a": (8, "s", "s")}, S, *over("s", 32, 128)),
    *at("matmul-scores", _matmul, {"a": (8, "s", "s"), "b": (8, "s", 16)}, S, *over("s", 32, 128)),
    *at("attention", _attention, {"a": (8, "s", 16)}, S, *over("s", 32, 128)),
    *at("mean-last", _mean, {"a": (64, "s")}, LINE, *over("s", 1000, 37)),
    *at("swish", _swish, {"a": (64, "s")}, LINE, *over("s", 1000, 37)),
    *at("conv-image", _conv(3, 16), {"a": (1, 3, "h", "w")}, {"h": (8, 128), "w": (8, 128)}, {"h": 64, "w": 64}),
    *at("dense-batch", _dense(256, 256), {"a": ("b", 256)}, _BATCH, *over("b", 1, 8, 64)),
    *at("conv-batch", _conv(16, 32), {"a": ("b", 16, 32, 32)}, _BATCH, *over("b", 8)),
    *(
        model
        for inputs, outputs in ((384, 1536), (768, 768), (1024, 3072))
        for model in at(
            f"dense-{inputs}x{outputs}", _dense(inputs, outputs), {"a": (1, "s", inputs)}, _ROW, *over("s", 7, 60)
        )
    ),
    *at("conv-512", _conv(512, 512), {"a": ("n", 512, 7, 7)}, {"n": (1, 8)}, *over("n", 1, 4)),
    *at("conv-256", _conv(256, 256), {"a": ("n", 256, 14, 14)}, {"n": (1, 8)}, *over("n", 1, 4)),
    *at("two-convolutions", _two_convolutions, {"a": (1, 3, 48, "w")}, {"w": (32, 640)}, *over("w", 320, 321)),
    *at(
        "encoder",
        _encoder(2, 64, 4, 256),
        {"a": ("b", "s", 64)},
        {"b": (1, 16), "s": (2, 64)},
        {"b": 8, "s": 32},
        {"b": 1, "s": 17},
    ),
    *at("encoder-768", _encoder(2, 768, 12, 3072), {"a": (1, "s", 768)}, _ROW, *over("s", 16, 100)),
    *at(
        "cached-attention",
        _cached_attention(64),
        {
            **dict.fromkeys(("q", "k", "v"), (1, 12, "s", 64)),
            **dict.fromkeys(("past_k", "past_v"), (1, 12, "p", 64)),
        },
        {"s": (1, 64), "p": (1, 512)},
        {"s": 1, "p": 200},
        {"s": 64, "p": 1},
    ),
    *at(
        "classifier",
        _classifier,
        {"a": ("b", 3, "h", "w")},
        {"b": (1, 8), "h": (16, 128), "w": (16, 128)},
        {"b": 4, "h": 64, "w": 64},
        {"b": 1, "h": 50, "w": 70},
    ),
    *at("recogniser", _recogniser, {"a": (1, 1, 32, "w")}, {"w": (32, 512)}, *over("w", 100, 400)),
    *at("lstm", _lstm(128, 256), {"a": ("s", 1, 128)}, _ROW, *over("s", 10, 64)),
)
"""Each model at several of its sizes: odd ones leave tails, even ones do not."""
