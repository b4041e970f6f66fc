"""Random networks as quantisers write them: every tensor is quantised and dequantised, weights by channel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.random_quantised.operators import MAKERS, Case, Writer, case, maker

__all__ = ["MAKERS", "case"]


@dataclass
class _Value:
    """A dequantised tensor: its name and shape, the reals that it may be, and the parameters that it was made with."""

    name: str
    shape: list[int]
    most: float
    scale: str
    zero: str


class _Network:
    def __init__(self, w: Writer) -> None:
        self.w, self.dtype = w, w.byte()

    def quantised(self, real: str, shape: Sequence[int], most: float) -> _Value:
        """A tensor of reals up to `most`, quantised and dequantised; sometimes it is cut."""
        w, info = self.w, np.iinfo(self.dtype)
        scale = w.constant(np.array(2 * most * w.rng.uniform(0.4, 1.1) / 255, np.float32))
        zero = w.constant(
            np.array(w.rng.integers(info.min, info.max + 1) if w.flag() else (info.min + info.max + 1) // 2, self.dtype)
        )
        return self.with_parameters(real, shape, most, scale, zero)

    def with_parameters(self, real: str, shape: Sequence[int], most: float, scale: str, zero: str) -> _Value:
        """The same with given parameters."""
        w = self.w
        q = w.node("QuantizeLinear", [real, scale, zero])
        return _Value(w.node("DequantizeLinear", [q, scale, zero]), [*shape], most, scale, zero)

    def weights(self, shape: Sequence[int], axis: int) -> tuple[str, float]:
        """Weights of one scale or one a channel, and the largest."""
        w = self.w
        values = np.clip(w.rng.normal(0, 45, shape).round(), -127, 127).astype(np.int8)
        scale = w.scale((shape[axis],) if w.flag() else (), 0.01)
        zero = w.constant(np.zeros(scale.shape, np.int8))
        inputs = [w.constant(values), w.constant(scale), zero]
        real = w.node("DequantizeLinear", inputs, axis=axis) if scale.shape else w.node("DequantizeLinear", inputs)
        return real, float(scale.max())

    def bias(self, count: int, x: _Value, weight_scale: float) -> str:
        """In i32 with a scale of its own, or in f32."""
        w = self.w
        if w.flag():
            return w.constant(w.rng.normal(0, x.most, count).astype(np.float32))
        scale = np.array(w.constants[x.scale] * np.float32(weight_scale), np.float32)
        values = w.rng.integers(-3000, 3000, count).astype(np.int32)
        return w.node("DequantizeLinear", [w.constant(values), w.constant(scale), w.constant(np.array(0, np.int32))])

    def activated(self, real: str) -> str:
        """A ReLU, limits, or nothing."""
        kind = self.w.rng.integers(3)
        if kind == 0:
            return real
        if kind == 1:
            return self.w.node("Relu", [real])
        limits = [self.w.constant(np.array(v, np.float32)) for v in (0.0, 1.5)]
        return self.w.node("Clip", [real, *limits])

    def convolution(self, x: _Value, most_outputs: int = 12) -> _Value:
        w, (n, c, height, width) = self.w, x.shape
        group = c if w.flag() else 1
        outputs = group * w.size(2) if group > 1 else w.size(most_outputs)
        kernel = [min(w.size(3), height), min(w.size(3), width)]
        pads = [int(w.rng.integers(0, k)) for k in (*kernel, *kernel)]
        stride = [w.size(2), w.size(2)]
        weights, scale = self.weights([outputs, c // group, *kernel], 0)
        inputs = [x.name, weights, *([self.bias(outputs, x, scale)] if w.flag() else ())]
        real = w.node("Conv", inputs, group=group, kernel_shape=kernel, strides=stride, pads=pads)
        spatial = [
            (s + pads[a] + pads[a + 2] - k) // stride[a] + 1
            for a, (s, k) in enumerate(zip((height, width), kernel, strict=True))
        ]
        most = x.most * scale * 60 * np.sqrt(c // group * kernel[0] * kernel[1])
        return self.quantised(self.activated(real), [n, outputs, *spatial], float(most))

    def residual(self, x: _Value) -> _Value:
        operator = str(self.w.rng.choice(["Add", "Mul"]))
        other = self.quantised(self.w.node("Relu", [x.name]), x.shape, x.most)
        most = x.most * (2 if operator == "Add" else x.most)
        return self.quantised(self.w.node(operator, [x.name, other.name]), x.shape, most)

    def pooled(self, x: _Value) -> _Value:
        w, (n, c, height, width) = self.w, x.shape
        kernel = [min(2, height), min(2, width)]
        shape = [n, c, (height - kernel[0]) // kernel[0] + 1, (width - kernel[1]) // kernel[1] + 1]
        operator = str(w.rng.choice(["MaxPool", "AveragePool"]))
        real = w.node(operator, [x.name], kernel_shape=kernel, strides=kernel)
        if operator == "MaxPool":
            return self.with_parameters(real, shape, x.most, x.scale, x.zero)
        return self.quantised(real, shape, x.most)

    def joined(self, x: _Value) -> _Value:
        other = self.quantised(self.w.node("Neg", [x.name]), x.shape, x.most)
        shape = [x.shape[0], 2 * x.shape[1], *x.shape[2:]]
        return self.quantised(self.w.node("Concat", [x.name, other.name], axis=1), shape, x.most)

    def dense(self, x: _Value) -> _Value:
        w, (rows, inputs), outputs = self.w, x.shape, self.w.size(20)
        turned = w.flag()
        weights, scale = self.weights([outputs, inputs] if turned else [inputs, outputs], 0 if turned else 1)
        if turned:
            real = w.node("Gemm", [x.name, weights, self.bias(outputs, x, scale)], transB=1)
        else:
            real = w.node("MatMul", [x.name, weights])
            real = w.node("Add", [real, self.bias(outputs, x, scale)]) if w.flag() else real
        most = float(x.most * scale * 60 * np.sqrt(inputs))
        return self.quantised(self.activated(real), [rows, outputs], most)

    def flattened(self, x: _Value) -> _Value:
        real = self.w.node("Flatten", [x.name])
        return self.with_parameters(real, [x.shape[0], int(np.prod(x.shape[1:]))], x.most, x.scale, x.zero)


@maker
def network(w: Writer) -> Case:
    """An image through convolutions, sums, pools and concatenations, then maybe dense layers."""
    net = _Network(w)
    shape = [w.size(2), w.size(4), 4 + w.size(6), 4 + w.size(6)]
    x = net.quantised(w.given(w.rng.normal(0, 0.7, shape).astype(np.float32)), shape, 2.0)
    steps: list[Any] = [net.convolution, net.convolution, net.residual, net.pooled, net.joined]
    for _ in range(w.size(4)):
        x = steps[int(w.rng.integers(len(steps)))](x)
    if w.flag():
        x = net.dense(net.flattened(x))
    return Case("network", w.model({w.nodes[-2].output[0]: net.dtype}), w.inputs, steps=1, share=0.01)


@maker
def wide(w: Writer) -> Case:
    """An image of many channels through a convolution and a dense layer: words of terms are whole."""
    net = _Network(w)
    shape = [w.size(2), 4 * w.size(20), 1 + w.size(9), 1 + w.size(9)]
    x = net.quantised(w.given(w.rng.normal(0, 0.7, shape).astype(np.float32)), shape, 2.0)
    x = net.dense(net.flattened(net.convolution(x, 4 * w.size(20))))
    return Case("network", w.model({w.nodes[-2].output[0]: net.dtype}), w.inputs, steps=1, share=0.01)
