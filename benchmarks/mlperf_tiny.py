"""The four networks of MLPerf Tiny (Banbury et al. 2021) in f32, NCHW, over seeded weights."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from benchmarks.model import GraphModel
from benchmarks.onnx_graph import OnnxGraph


class _Builder:
    """Layers of convolution, batch norm and ReLU, each with weights of its own."""

    def __init__(self, graph: OnnxGraph) -> None:
        self.graph = graph

    def conv(
        self, x: str, channels: tuple[int, int], kernel: Sequence[int], pads: Sequence[int],
        stride: int = 1, group: int = 1, relu: bool = True,
    ) -> str:  # fmt: skip
        """Convolution from `channels[0]` to `channels[1]`, batch norm, and ReLU if wanted."""
        name = f"layer{len(self.graph.nodes)}"
        weight = self.graph.weight(f"{name}.weight", channels[1], channels[0] // group, *kernel)
        x = self.graph.op("Conv", x, weight, pads=list(pads), strides=[stride] * 2, group=group)
        x = self.graph.op("BatchNormalization", x, *self.graph.norm(name, channels[1]), epsilon=1e-3)
        return self.graph.op("Relu", x) if relu else x

    def dense(self, x: str, inputs: int, outputs: int) -> str:
        name = f"layer{len(self.graph.nodes)}"
        weight = self.graph.weight(f"{name}.weight", outputs, inputs)
        return self.graph.op("Gemm", x, weight, self.graph.weight(f"{name}.bias", outputs, fan_in=200), transB=1)

    def pooled(self, x: str, channels: int, classes: int) -> str:
        """Global average, dense and softmax."""
        flat = self.graph.op("Flatten", self.graph.op("GlobalAveragePool", x))
        return self.graph.op("Softmax", self.dense(flat, channels, classes))

    def separable(self, x: str, inputs: int, outputs: int, stride: int = 1) -> str:
        """Depthwise 3x3, then 1x1. With stride 2, an even image is padded after its end only, as TensorFlow does."""
        pads = [1, 1, 1, 1] if stride == 1 else [0, 0, 1, 1]
        x = self.conv(x, (inputs, inputs), (3, 3), pads, stride, group=inputs)
        return self.conv(x, (inputs, outputs), (1, 1), [0] * 4)


class ResNet8(GraphModel):
    """Image classification: CIFAR-10 images to ten classes."""

    name = "resnet8"
    inputs = {"image": (1, 3, 32, 32)}

    def nodes(self, graph: OnnxGraph) -> str:
        builder = _Builder(graph)
        x = builder.conv("image", (3, 16), (3, 3), [1] * 4)
        for inputs, outputs, stride in ((16, 16, 1), (16, 32, 2), (32, 64, 2)):
            pads = [1] * 4 if stride == 1 else [0, 0, 1, 1]
            inner = builder.conv(x, (inputs, outputs), (3, 3), pads, stride)
            inner = builder.conv(inner, (outputs, outputs), (3, 3), [1] * 4, relu=False)
            if stride > 1:
                x = builder.conv(x, (inputs, outputs), (1, 1), [0] * 4, stride, relu=False)
            x = graph.op("Relu", graph.op("Add", x, inner))
        return builder.pooled(x, 64, 10)


class DsCnn(GraphModel):
    """Keyword spotting: 49 frames of 10 coefficients to twelve words."""

    name = "ds_cnn"
    inputs = {"features": (1, 1, 49, 10)}

    def nodes(self, graph: OnnxGraph) -> str:
        builder = _Builder(graph)
        x = builder.conv("features", (1, 64), (10, 4), [4, 1, 5, 1], 2)
        for _ in range(4):
            x = builder.separable(x, 64, 64)
        return builder.pooled(x, 64, 12)


class MobileNetV1(GraphModel):
    """Visual wake words: MobileNetV1 at a quarter of its width on 96x96 images, person or not."""

    name = "mobilenetv1-0.25"
    inputs = {"image": (1, 3, 96, 96)}

    def nodes(self, graph: OnnxGraph) -> str:
        builder = _Builder(graph)
        x, channels = builder.conv("image", (3, 8), (3, 3), [0, 0, 1, 1], 2), 8
        plan = [(16, 1), (32, 2), (32, 1), (64, 2), (64, 1), (128, 2), *[(128, 1)] * 5, (256, 2), (256, 1)]
        for outputs, stride in plan:
            x, channels = builder.separable(x, channels, outputs, stride), outputs
        return builder.pooled(x, channels, 2)


class Autoencoder(GraphModel):
    """Anomaly detection: five frames of 128 coefficients, through eight numbers and back."""

    name = "autoencoder"
    inputs = {"features": (1, 640)}

    def nodes(self, graph: OnnxGraph) -> str:
        builder, x = _Builder(graph), "features"
        widths = [640, *[128] * 4, 8, *[128] * 4]
        for inputs, outputs in pairwise(widths):
            x = builder.dense(x, inputs, outputs)
            norm = graph.norm(f"norm{len(graph.nodes)}", outputs)
            x = graph.op("Relu", graph.op("BatchNormalization", x, *norm, epsilon=1e-3))
        return builder.dense(x, 128, 640)
