"""Models as ONNX Runtime's quantiser writes them: bytes with a scale around each operator, weights with one a channel.

Networks of convolutions are quantised whole; of transformers and single layers the products are. Activations are u8
with a zero point, weights s8. What calibrates them is the example.
"""

from __future__ import annotations

import importlib
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.exported import Exported
from benchmarks.layers import Matmul
from benchmarks.mlperf_tiny import Autoencoder, DsCnn, MobileNetV1, ResNet8
from benchmarks.model import Array, GraphModel, Model
from benchmarks.onnx_graph import OnnxGraph

PRODUCTS = ("MatMul", "Gemm", "Conv")


class Quantised(Model):
    """A model in f32, quantised; `operators` are quantised, all if there are none."""

    tolerance = 0.2
    """Engines round sums next to a tie to either side, and each layer carries that on."""

    def __init__(self, parent: Model, *operators: str, dynamic: bool = False) -> None:
        self.parent, self._operators, self._dynamic = parent, list(operators), dynamic
        self.name = f"{parent.name}-{'dynamic' if dynamic else 'int8'}"

    def example(self) -> dict[str, Array]:
        return self.parent.example()

    def torch_module(self) -> Any:
        return self.parent.torch_module()

    @property
    def multiply_adds(self) -> int:
        return self.parent.multiply_adds

    def _write(self, path: Path) -> None:
        quantization: Any = importlib.import_module("onnxruntime.quantization")
        ready = path.with_suffix(".ready.onnx")
        level = logging.getLogger().level
        logging.getLogger().setLevel(logging.ERROR)
        preprocess: Any = importlib.import_module("onnxruntime.quantization.shape_inference").quant_pre_process
        preprocess(str(self.parent.onnx), str(ready), skip_symbolic_shape=True)
        if self._dynamic:
            quantization.quantize_dynamic(str(ready), str(path), per_channel=True, op_types_to_quantize=PRODUCTS[:2])
        else:
            quantization.quantize_static(
                *(str(ready), str(path), _reader(quantization.CalibrationDataReader, self.parent.example())),
                quant_format=quantization.QuantFormat.QDQ,
                per_channel=True,
                activation_type=quantization.QuantType.QUInt8,
                weight_type=quantization.QuantType.QInt8,
                op_types_to_quantize=self._operators or None,
            )
        logging.getLogger().setLevel(level)


def _reader(base: Any, inputs: Mapping[str, Array]) -> Any:
    """What calibration reads: the example, once."""

    class Reader(base):
        def __init__(self) -> None:
            self.left = [dict(inputs)]

        def get_next(self) -> dict[str, Array] | None:
            return self.left.pop() if self.left else None

    return Reader()


class _Layer(GraphModel):
    """A convolution of an image with a ReLU: normally distributed inputs."""

    def __init__(
        self, channels: tuple[int, int], size: int, kernel: int = 1, *, stride: int = 1, group: int = 1
    ) -> None:
        kind = "depthwise" if group > 1 else "conv"
        self.name = f"{kind}{kernel}x{kernel}-{channels[0]}-{channels[1]}-{size}{f'-by{stride}' if stride > 1 else ''}"
        self.inputs = {"x": (1, channels[0], size, size)}
        self._weight = (channels[1], channels[0] // group, kernel, kernel)
        self._sizes = {"pads": [kernel // 2] * 4, "strides": [stride] * 2, "group": group}

    def nodes(self, graph: OnnxGraph) -> str:
        operands = (graph.weight("weight", *self._weight), graph.weight("bias", self._weight[0], fan_in=200))
        return graph.op("Relu", graph.op("Conv", "x", *operands, **self._sizes))


def _depthwise(channels: int, size: int, kernel: int = 3, stride: int = 1) -> Model:
    return Quantised(_Layer((channels, channels), size, kernel, stride=stride, group=channels))


def _convolution(inputs: int, outputs: int, size: int, kernel: int = 1, stride: int = 1) -> Model:
    return Quantised(_Layer((inputs, outputs), size, kernel, stride=stride))


def _product(m: int, n: int, k: int) -> Model:
    return Quantised(Matmul(m, n, k, constant=True), "MatMul")


_NETWORKS: tuple[Callable[[], Model], ...] = (ResNet8, DsCnn, MobileNetV1, Autoencoder)

QUANTISED_NETWORKS: tuple[Model, ...] = (
    *(Quantised(network()) for network in _NETWORKS),
    *(Quantised(Exported(name)) for name in ("mobilenetv2", "resnet50")),
    *(Quantised(Exported(name), "MatMul", "Gemm") for name in ("bert", "gpt")),
    *(Quantised(Exported(name), dynamic=True) for name in ("bert", "gpt")),
)
QUANTISED_SHAPES: tuple[Model, ...] = (
    *(_product(size, size, size) for size in (256, 512, 1024, 2048)),
    *(_product(128, n, k) for n, k in ((768, 768), (3072, 768), (768, 3072))),
    *(_product(1, n, k) for n, k in ((768, 768), (3072, 768), (4096, 4096))),
    *(_product(*sizes) for sizes in ((127, 255, 383), (33, 1000, 517))),
    *(
        _convolution(*sizes)
        for sizes in ((64, 256, 56), (256, 64, 56), (1024, 256, 14), (64, 64, 56, 3), (512, 512, 7, 3))
    ),
    *(_convolution(*sizes) for sizes in ((3, 64, 224, 7, 2), (3, 32, 224, 3, 2), (13, 29, 31, 3))),
    *(_depthwise(*sizes) for sizes in ((32, 112), (144, 56, 3, 2), (960, 7), (240, 14, 5))),
)
