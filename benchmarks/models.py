"""The models that are measured: a ``.mir`` text, and the same network as ONNX over the same weights.

To add one: subclass ``Model``, give its name, inputs and result, write ``nodes``, and list it in ``MODELS``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt
from safetensors.numpy import load

from benchmarks.onnx_graph import OnnxGraph, multiply_adds

SAMPLES = Path(__file__).resolve().parent.parent / "samples"
SEED = 2

Array = npt.NDArray[np.float32]


class Model(ABC):
    """One network with fixed shapes, f32 throughout, one result."""

    name: str
    inputs: dict[str, tuple[int, ...]]
    result: tuple[int, ...]

    @abstractmethod
    def nodes(self, graph: OnnxGraph) -> str:
        """Append the network to the ONNX graph, the node of the result last; its name."""

    @property
    def mir(self) -> Path:
        return SAMPLES / self.name / f"{self.name}.mir"

    @cached_property
    def graph(self) -> OnnxGraph:
        """The network over its weights; the last node gives the result."""
        graph = OnnxGraph(load(self.mir.with_suffix(".safetensors").read_bytes()))
        self.nodes(graph)
        return graph

    @cached_property
    def onnx(self) -> bytes:
        return self.graph.finish(self.name, self.inputs, self.result)

    @cached_property
    def multiply_adds(self) -> int:
        return multiply_adds(self.onnx)

    def example(self) -> list[Array]:
        """Seeded inputs, in [0, 1) as pixels are."""
        generator = np.random.default_rng(SEED)
        return [generator.random(shape, dtype=np.float32) for shape in self.inputs.values()]


def _dense(graph: OnnxGraph, value: str, layer: str) -> str:
    return graph.op("Gemm", value, f"{layer}.weight", f"{layer}.bias", transB=1)


class LeNet5(Model):
    name = "lenet5"
    inputs = {"image": (1, 1, 32, 32)}
    result = (1, 10)

    def nodes(self, graph: OnnxGraph) -> str:
        value = "image"
        for layer in ("conv1", "conv2"):
            value = graph.op("Relu", graph.op("Conv", value, f"{layer}.weight", f"{layer}.bias"))
            value = graph.op("MaxPool", value, kernel_shape=[2, 2], strides=[2, 2])
        value = graph.op("Flatten", value)
        for layer in ("fc1", "fc2"):
            value = graph.op("Relu", _dense(graph, value, layer))
        return _dense(graph, value, "fc3")


class Mlp(Model):
    name = "mlp"
    inputs = {"pixels": (1, 784)}
    result = (1, 10)

    def nodes(self, graph: OnnxGraph) -> str:
        value = "pixels"
        for layer in ("fc1", "fc2"):
            value = graph.op("Relu", _dense(graph, value, layer))
        return graph.op("Softmax", _dense(graph, value, "fc3"))


class ResNetTiny(Model):
    name = "resnet_tiny"
    inputs = {"image": (1, 3, 32, 32)}
    result = (1, 10)

    def nodes(self, graph: OnnxGraph) -> str:
        value = graph.op("Relu", self._convolve(graph, "image", "conv1", "bn1", pad=1))
        value = self._block(graph, value, "block1", stride=1)
        value = self._block(graph, value, "block2", stride=2)
        value = self._block(graph, value, "block3", stride=2)
        return _dense(graph, graph.op("Flatten", graph.op("GlobalAveragePool", value)), "fc")

    def _convolve(self, graph: OnnxGraph, value: str, conv: str, norm: str, *, pad: int, stride: int = 1) -> str:
        value = graph.op("Conv", value, f"{conv}.weight", pads=[pad] * 4, strides=[stride] * 2)
        parts = ("gamma", "beta", "moving_mean", "moving_variance")
        return graph.op("BatchNormalization", value, *(f"{norm}.{part}" for part in parts), epsilon=1e-5)

    def _block(self, graph: OnnxGraph, value: str, block: str, stride: int) -> str:
        inner = self._convolve(graph, value, f"{block}.conv1", f"{block}.bn1", pad=1, stride=stride)
        inner = self._convolve(graph, graph.op("Relu", inner), f"{block}.conv2", f"{block}.bn2", pad=1)
        if stride > 1:
            value = self._convolve(graph, value, f"{block}.down.conv", f"{block}.down.bn", pad=0, stride=stride)
        return graph.op("Relu", graph.op("Add", inner, value))


class Attention(Model):
    name = "attention"
    inputs = {"tokens": (32, 64)}
    result = (32, 64)

    def nodes(self, graph: OnnxGraph) -> str:
        normed = self._normalise(graph, "tokens", "norm1")
        query, key, value = (_dense(graph, normed, layer) for layer in ("query", "key", "value"))
        products = graph.op("MatMul", query, graph.op("Transpose", key, perm=[1, 0]))
        weights = graph.op("Softmax", graph.op("Mul", products, graph.constant("factor", 0.125)))
        mixed = _dense(graph, graph.op("MatMul", weights, value), "projection")
        attended = graph.op("Add", "tokens", mixed)
        hidden = graph.op("Gelu", _dense(graph, self._normalise(graph, attended, "norm2"), "expand"))
        return graph.op("Add", attended, _dense(graph, hidden, "contract"))

    def _normalise(self, graph: OnnxGraph, value: str, layer: str) -> str:
        operands = (value, f"{layer}.gamma", f"{layer}.beta")
        return graph.op("LayerNormalization", *operands, axis=-1, epsilon=1e-5)


MODELS: dict[str, Model] = {model.name: model for model in (LeNet5(), Mlp(), ResNetTiny(), Attention())}
