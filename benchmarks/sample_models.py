"""The networks of ``samples/`` in ONNX operators, over the samples' own weights."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt
from safetensors.numpy import load

from benchmarks.model import GraphModel
from benchmarks.onnx_graph import OnnxGraph

SAMPLES = Path(__file__).resolve().parent.parent / "samples"


def batched(name: str, batch: int) -> str:
    """The name of a model at a batch size; batch 1 has none."""
    return name if batch == 1 else f"{name}-b{batch}"


class Sample(GraphModel):
    """A network whose weights are those of a sample."""

    sample: str

    @property
    def mir(self) -> Path:
        """The network as a text that stands beside its weights."""
        return SAMPLES / self.sample / f"{self.sample}.mir"

    def weights(self) -> Mapping[str, npt.NDArray[np.float32]]:
        return load(self.mir.with_suffix(".safetensors").read_bytes())


def _dense(graph: OnnxGraph, value: str, layer: str) -> str:
    return graph.op("Gemm", value, f"{layer}.weight", f"{layer}.bias", transB=1)


class LeNet5(Sample):
    sample = "lenet5"

    def __init__(self, batch: int = 1) -> None:
        self.name = batched("lenet5", batch)
        self.inputs = {"image": (batch, 1, 32, 32)}

    def nodes(self, graph: OnnxGraph) -> str:
        value = "image"
        for layer in ("conv1", "conv2"):
            value = graph.op("Relu", graph.op("Conv", value, f"{layer}.weight", f"{layer}.bias"))
            value = graph.op("MaxPool", value, kernel_shape=[2, 2], strides=[2, 2])
        value = graph.op("Flatten", value)
        for layer in ("fc1", "fc2"):
            value = graph.op("Relu", _dense(graph, value, layer))
        return _dense(graph, value, "fc3")


class Mlp(Sample):
    sample = "mlp"

    def __init__(self, batch: int = 1) -> None:
        self.name = batched("mlp", batch)
        self.inputs = {"pixels": (batch, 784)}

    def nodes(self, graph: OnnxGraph) -> str:
        value = "pixels"
        for layer in ("fc1", "fc2"):
            value = graph.op("Relu", _dense(graph, value, layer))
        return graph.op("Softmax", _dense(graph, value, "fc3"))


class ResNetTiny(Sample):
    name = sample = "resnet_tiny"
    inputs = {"image": (1, 3, 32, 32)}

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


class Attention(Sample):
    name = sample = "attention"
    inputs = {"tokens": (32, 64)}

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
