"""The networks of `mlperf_tiny.py` in integers, as the TensorFlow Lite converter writes them.

`python -m benchmarks.tflite_quantised OUT` writes `resnet8.tflite`, `ds_cnn.tflite`, ... into the folder OUT, each with
`.npz` files beside it: an input, and what TensorFlow Lite for Microcontrollers gives for it. In Python:

    data = quantised(DsCnn())  # the bytes of the file
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from onnx import AttributeProto, NodeProto, helper

from benchmarks.mlperf_tiny import Autoencoder, DsCnn, MobileNetV1, ResNet8
from benchmarks.model import GraphModel
from benchmarks.tflite_graph import Array, Codes, TfliteGraph, run_micro

NETWORKS: tuple[type[GraphModel], ...] = (Autoencoder, DsCnn, ResNet8, MobileNetV1)
SAMPLES = 4
SEED = 5
SAME, VALID = 0, 1


def quantised(model: GraphModel) -> bytes:
    """The `.tflite` file of a network: weights of 8 bits, of convolutions with a scale a channel, and int8 ends."""
    return _Converter(model).file()


def example(data: bytes) -> Array:
    """A seeded input of a file that `quantised` made."""
    shape = import_module("tflite").Model.GetRootAs(data, 0).Subgraphs(0).Tensors(0).ShapeAsNumpy()
    return np.random.default_rng(SEED).integers(-128, 128, tuple(shape)).astype(np.int8)


class _Converter:
    """Converts node by node; a batch norm and a ReLU go into the operator in front of them."""

    def __init__(self, model: GraphModel) -> None:
        self.model, self.nodes, self.weights = model, list(model.graph.nodes), model.graph.weights
        self.graph = TfliteGraph()
        self.ranges = _ranges(model)
        self.values: dict[str, int] = {}

    def file(self) -> bytes:
        ((name, shape),) = self.model.inputs.items()
        shape = (shape[0], *shape[2:], shape[1]) if len(shape) == 4 else shape
        self.values[name] = self.graph.input(name, shape, self._codes(name))
        index = 0
        while index < len(self.nodes):
            index += self._convert(self.nodes[index], self.nodes[index + 1 :])
        return self.graph.bytes([self.values[self.nodes[-1].output[0]]])

    def _codes(self, name: str) -> Codes:
        low, high = self.ranges[name]
        scale = np.float32((high - low) / 255)
        return Codes(float(scale), int(np.clip(round(-128 - low / float(scale)), -128, 127)))

    def _shape(self, tensor: int) -> tuple[int, ...]:
        return self.graph.tensors[tensor].shape

    def _put(
        self, node: NodeProto, name: str, inputs: Sequence[int], shape: Sequence[int], codes: Codes, options: Any = None
    ) -> None:
        self.values[node.output[0]] = self.graph.op(name, inputs, shape, codes, options)

    def _convert(self, node: NodeProto, rest: Sequence[NodeProto]) -> int:
        """Write the operator of a node; how many nodes it is."""
        used = [node]
        follows = {"Conv": ("BatchNormalization", "Relu"), "Gemm": ("BatchNormalization", "Relu"), "Add": ("Relu",)}
        for each in rest:
            if each.op_type in follows.get(node.op_type, ()) and each.input[0] == used[-1].output[0]:
                used.append(each)
            else:
                break
        x = self.values[node.input[0]]
        last, act = used[-1], int(used[-1].op_type == "Relu")
        match node.op_type:
            case "Conv":
                self._convolution(node, used, act)
            case "Gemm":
                weight, bias = self._folded(node, used)
                shape = (self._shape(x)[0], weight.shape[0])
                options = ("FullyConnectedOptions", {"FusedActivationFunction": act})
                inputs = [x, *self._constants(weight, bias, x, None)]
                self._put(last, "FULLY_CONNECTED", inputs, shape, self._codes(last.output[0]), options)
            case "Add":
                options = ("AddOptions", {"FusedActivationFunction": act})
                inputs = [x, self.values[node.input[1]]]
                self._put(last, "ADD", inputs, self._shape(x), self._codes(last.output[0]), options)
            case "GlobalAveragePool":
                n, h, w, c = self._shape(x)
                sizes = {"Padding": VALID, "StrideH": h, "StrideW": w, "FilterHeight": h, "FilterWidth": w}
                self._put(node, "AVERAGE_POOL_2D", [x], (n, 1, 1, c), self._of(x), ("Pool2DOptions", sizes))
            case "Flatten":
                shape = (self._shape(x)[0], int(np.prod(self._shape(x)[1:])))
                wanted = self.graph.constant(np.array(shape, np.int32))
                self._put(node, "RESHAPE", [x, wanted], shape, self._of(x))
            case "Softmax":
                options = ("SoftmaxOptions", {"Beta": 1.0})
                self._put(node, "SOFTMAX", [x], self._shape(x), Codes(1 / 256, -128), options)
            case _:
                raise ValueError(f"no form for {node.op_type}")
        return len(used)

    def _of(self, tensor: int) -> Codes:
        codes = self.graph.tensors[tensor].codes
        assert codes is not None
        return codes

    def _folded(self, node: NodeProto, used: Sequence[NodeProto]) -> tuple[Array, Array]:
        """The weight and the bias of a node with the batch norm behind it."""
        weight = self.weights[node.input[1]].astype(np.float64)
        has_bias = len(node.input) > 2
        bias = self.weights[node.input[2]].astype(np.float64) if has_bias else np.zeros(weight.shape[0])
        for each in used:
            if each.op_type == "BatchNormalization":
                scale, offset, mean, variance = (self.weights[name].astype(np.float64) for name in each.input[1:])
                factor = scale / np.sqrt(variance + _attributes(each)["epsilon"])
                weight = weight * factor.reshape(-1, *(1 for _ in weight.shape[1:]))
                bias = (bias - mean) * factor + offset
        return weight, bias

    def _convolution(self, node: NodeProto, used: Sequence[NodeProto], activation: int) -> None:
        x, given = self.values[node.input[0]], _attributes(node)
        weight, bias = self._folded(node, used)
        n, h, w, _ = self._shape(x)
        stride, pads, group = given["strides"][0], given["pads"], given["group"]
        outputs, _, kh, kw = weight.shape
        shape = (n, -(-h // stride), -(-w // stride), outputs)
        assert list(pads) == _same((h, w), (kh, kw), stride)
        is_depthwise = group > 1
        weight = weight.transpose((1, 2, 3, 0) if is_depthwise else (0, 2, 3, 1))
        fields = {"Padding": SAME, "StrideH": stride, "StrideW": stride, "FusedActivationFunction": activation}
        kind = "Conv2DOptions"
        if is_depthwise:
            kind, fields = "DepthwiseConv2DOptions", {**fields, "DepthMultiplier": 1}
        inputs = [x, *self._constants(weight, bias, x, 3 if is_depthwise else 0)]
        name = "DEPTHWISE_CONV_2D" if is_depthwise else "CONV_2D"
        self._put(used[-1], name, inputs, shape, self._codes(used[-1].output[0]), (kind, fields))

    def _constants(self, weight: Array, bias: Array, x: int, axis: int | None) -> list[int]:
        """The weight in 8 bits, with one scale or one an index of `axis`; the bias on the scale of the sums."""
        others = None if axis is None else tuple(a for a in range(weight.ndim) if a != axis)
        largest = np.abs(weight).max(axis=others, keepdims=True)
        scales = (np.maximum(largest, 1e-12) / 127).astype(np.float32)
        data = np.clip(np.rint(weight / scales), -127, 127).astype(np.int8)
        many = tuple(map(float, scales.reshape(-1)))
        both = np.array(many, np.float32) * np.float32(self._of(x).scales[0])
        whole = np.clip(np.rint(bias / both), -(1 << 31), (1 << 31) - 1).astype(np.int32)
        return [
            self.graph.constant(data, Codes(many, 0, "int8", axis or 0)),
            self.graph.constant(whole, Codes(tuple(map(float, both)), 0, "int32")),
        ]


def _attributes(node: NodeProto) -> Mapping[str, Any]:
    read: Any = helper.get_attribute_value
    given: Sequence[AttributeProto] = node.attribute
    return {a.name: read(a) for a in given}


def _same(sizes: Sequence[int], kernel: Sequence[int], stride: int) -> list[int]:
    """The pads of SAME, as ONNX writes them."""
    totals = [max((-(-n // stride) - 1) * stride + k - n, 0) for n, k in zip(sizes, kernel, strict=True)]
    return [t // 2 for t in totals] + [t - t // 2 for t in totals]


def _ranges(model: GraphModel) -> dict[str, tuple[float, float]]:
    """The least and the largest number of every value over some inputs, and 0."""
    onnx: Any = import_module("onnx")
    runtime: Any = import_module("onnxruntime")
    proto = onnx.load_model(model.onnx)
    names = [name for node in proto.graph.node for name in node.output]
    del proto.graph.output[:]
    proto.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    session = runtime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    generator = np.random.default_rng(SEED)
    ranges: dict[str, tuple[float, float]] = {}
    for _ in range(SAMPLES):
        feed = {name: generator.random(shape, dtype=np.float32) for name, shape in model.inputs.items()}
        values: dict[str, Array] = {**feed, **dict(zip(names, session.run(names, feed), strict=True))}
        for name, value in values.items():
            low, high = ranges.get(name, (0.0, 1e-6))
            ranges[name] = min(low, float(value.min())), max(high, float(value.max()))
    return ranges


def main() -> None:
    """Write the files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path, help="the folder")
    out: Path = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    for kind in NETWORKS:
        data = quantised(kind())
        given = example(data)
        (out / f"{kind.name}.tflite").write_bytes(data)
        (result,) = run_micro(data, [given])
        np.savez(out / f"{kind.name}.npz", input=given, result=result)
        print(f"{kind.name}.tflite: {len(data)} bytes")


if __name__ == "__main__":
    main()
