"""Random operators and networks of TensorFlow Lite, of floats and quantised."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks.tflite_graph import Array, Codes, TfliteGraph

FLOAT = "float32"
Kind = Codes | str


@dataclass
class Draw:
    """A network under construction, with random numbers."""

    seed: int
    is_quantised: bool
    graph: TfliteGraph = field(default_factory=TfliteGraph)

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)
        self.shapes: dict[int, tuple[int, ...]] = {}
        self.kinds: dict[int, Kind] = {}

    def among(self, *values: Any) -> Any:
        return values[int(self.rng.integers(len(values)))]

    def size(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high + 1))

    def codes(self, low: float = 0.002, high: float = 0.2) -> Codes:
        """A scale, drawn over orders of magnitude, and any zero point."""
        scale = float(np.exp(self.rng.uniform(float(np.log(low)), float(np.log(high)))))
        return Codes(float(np.float32(scale)), self.size(-128, 127))

    def kind(self) -> Kind:
        return self.codes() if self.is_quantised else FLOAT

    def known(self, tensor: int, shape: Sequence[int], kind: Kind) -> int:
        self.shapes[tensor], self.kinds[tensor] = tuple(shape), kind
        return tensor

    def input(self, *shape: int, kind: Kind | None = None) -> int:
        kind = self.kind() if kind is None else kind
        return self.known(self.graph.input(f"x{len(self.graph.inputs)}", shape, kind), shape, kind)

    def op(
        self, name: str, inputs: Sequence[int], shape: Sequence[int], kind: Kind | None = None, options: Any = None
    ) -> int:
        kind = self.kind() if kind is None else kind
        return self.known(self.graph.op(name, inputs, shape, kind, options), shape, kind)

    def ints(self, *values: Any) -> int:
        return self.graph.constant(np.array(values[0] if len(values) == 1 else values, np.int32))

    def weight(self, shape: Sequence[int], axis: int, x: int, many: bool = True) -> tuple[int, Array]:
        """A weight and its scales: bytes with one scale an index of `axis`, or floats."""
        if not self.is_quantised:
            return self.graph.constant(self.rng.standard_normal(shape).astype(np.float32)), np.ones(1)
        data = self.rng.integers(-127, 128, shape).astype(np.int8)
        scales = np.exp(self.rng.uniform(np.log(0.001), np.log(0.02), shape[axis] if many else 1)).astype(np.float32)
        return self.graph.constant(data, Codes(tuple(map(float, scales)), 0, "int8", axis)), scales

    def bias(self, count: int, x: int, scales: Array) -> int:
        if self.rng.random() < 0.2:
            return -1
        if not self.is_quantised:
            return self.graph.constant(self.rng.standard_normal(count).astype(np.float32))
        kind = self.kinds[x]
        assert isinstance(kind, Codes)
        both = tuple(float(np.float32(s) * np.float32(kind.scales[0])) for s in scales)
        return self.graph.constant(self.rng.integers(-3000, 3000, count).astype(np.int32), Codes(both, 0, "int32"))

    def given(self) -> list[Array]:
        """Values for the inputs."""
        return [self._values(self.shapes[t], self.kinds[t]) for t in self.graph.inputs]

    def _values(self, shape: tuple[int, ...], kind: Kind) -> Array:
        dtype = np.dtype(kind.dtype if isinstance(kind, Codes) else kind)
        if dtype == np.bool_:
            return self.rng.random(shape) < 0.5
        if dtype.kind == "f":
            return (self.rng.standard_normal(shape) * 3).astype(dtype)
        limits = np.iinfo(dtype) if dtype.itemsize == 1 else np.iinfo(np.int8)
        return self.rng.integers(limits.min, limits.max, shape, endpoint=True).astype(dtype)


Maker = Callable[[Draw], list[int]]
MAKERS: dict[str, Maker] = {}


def maker(function: Maker) -> Maker:
    MAKERS[function.__name__] = function
    return function


def padded(n: int, k: int, s: int, padding: int, d: int = 1) -> int:
    """The size of a result: SAME is 0, VALID is 1."""
    return -(-n // s) if padding == 0 else (n - (k - 1) * d - 1) // s + 1


def image(draw: Draw) -> tuple[int, int, int, int]:
    """An image, and its sizes."""
    h, w, c = draw.size(3, 9), draw.size(3, 9), draw.size(1, 8)
    return draw.input(1, h, w, c), h, w, c


@maker
def conv(draw: Draw) -> list[int]:
    x, h, w, c = image(draw)
    return [add_conv(draw, x, h, w, c)]


def add_conv(draw: Draw, x: int, h: int, w: int, c: int) -> int:
    oc, kh, kw, s, p = draw.size(1, 9), draw.size(1, 3), draw.size(1, 3), draw.size(1, 2), draw.size(0, 1)
    weight, scales = draw.weight((oc, kh, kw, c), 0, x, draw.rng.random() < 0.8)
    bias = draw.bias(oc, x, scales)
    inputs = [x, weight] if bias < 0 else [x, weight, bias]
    fields = {"Padding": p, "StrideH": s, "StrideW": s, "FusedActivationFunction": draw.among(0, 1, 3)}
    shape = (1, padded(h, kh, s, p), padded(w, kw, s, p), oc)
    return draw.op("CONV_2D", inputs, shape, options=("Conv2DOptions", fields))


@maker
def depthwise(draw: Draw) -> list[int]:
    x, h, w, c = image(draw)
    m, kh, kw, s, p = draw.size(1, 2), draw.size(1, 3), draw.size(1, 3), draw.size(1, 2), draw.size(0, 1)
    weight, scales = draw.weight((1, kh, kw, c * m), 3, x)
    bias = draw.bias(c * m, x, scales)
    fields = {
        "Padding": p,
        "StrideH": s,
        "StrideW": s,
        "DepthMultiplier": m,
        "FusedActivationFunction": draw.among(0, 1, 3),
    }
    shape = (1, padded(h, kh, s, p), padded(w, kw, s, p), c * m)
    inputs = [x, weight] if bias < 0 else [x, weight, bias]
    return [draw.op("DEPTHWISE_CONV_2D", inputs, shape, options=("DepthwiseConv2DOptions", fields))]


@maker
def transposed_conv(draw: Draw) -> list[int]:
    x, h, w, c = image(draw)
    oc, k, s, p = draw.size(1, 5), draw.size(1, 3), draw.size(1, 3), draw.size(0, 1)
    weight, scales = draw.weight((oc, k, k, c), 0, x)
    bias = draw.bias(oc, x, scales)
    size = [n * s if p == 0 else (n - 1) * s + k for n in (h, w)]
    shape = (1, *size, oc)
    fields = {"Padding": p, "StrideH": s, "StrideW": s}
    inputs = [draw.ints(shape), weight, x] + ([] if bias < 0 else [bias])
    return [draw.op("TRANSPOSE_CONV", inputs, shape, options=("TransposeConvOptions", fields))]


@maker
def dense(draw: Draw) -> list[int]:
    n, i, o = draw.size(1, 3), draw.size(1, 40), draw.size(1, 20)
    x = draw.input(n, i)
    weight, scales = draw.weight((o, i), 0, x, draw.rng.random() < 0.5)
    bias = draw.bias(o, x, scales)
    fields = {"FusedActivationFunction": draw.among(0, 1, 3)}
    inputs = [x, weight] if bias < 0 else [x, weight, bias]
    return [draw.op("FULLY_CONNECTED", inputs, (n, o), options=("FullyConnectedOptions", fields))]


@maker
def arithmetic(draw: Draw) -> list[int]:
    x, h, w, c = image(draw)
    other = draw.input(*draw.among((1, h, w, c), (1, 1, 1, c), (1, h, 1, c)))
    name, kind = draw.among(("ADD", "AddOptions"), ("SUB", "SubOptions"), ("MUL", "MulOptions"))
    fields = {"FusedActivationFunction": draw.among(0, 1, 3)}
    out = draw.codes(0.05, 0.5) if draw.is_quantised else None
    return [draw.op(name, [x, other], (1, h, w, c), out, options=(kind, fields))]


@maker
def pool(draw: Draw) -> list[int]:
    x, h, w, c = image(draw)
    k, s, p = draw.size(1, 3), draw.size(1, 3), draw.size(0, 1)
    fields = {
        "Padding": p,
        "StrideH": s,
        "StrideW": s,
        "FilterHeight": k,
        "FilterWidth": k,
        "FusedActivationFunction": draw.among(0, 1, 3),
    }
    shape = (1, padded(h, k, s, p), padded(w, k, s, p), c)
    name = draw.among("AVERAGE_POOL_2D", "MAX_POOL_2D")
    return [draw.op(name, [x], shape, draw.kinds[x], options=("Pool2DOptions", fields))]


@maker
def function(draw: Draw) -> list[int]:
    names = ["RELU", "RELU6", "LEAKY_RELU", "LOGISTIC", "TANH", "HARD_SWISH", "ELU"]
    name = draw.among(*names)
    x = draw.input(1, draw.size(1, 5), 64, kind=draw.codes(0.01, 0.2) if draw.is_quantised else None)
    kind: Kind | None = None
    if draw.is_quantised:
        kind = {
            "LOGISTIC": Codes(1 / 256, -128),
            "TANH": Codes(1 / 128, 0),
            "RELU6": draw.kinds[x],
            "HARD_SWISH": draw.codes(0.05, 0.4),
        }.get(name)
    options = {"LEAKY_RELU": ("LeakyReluOptions", {"Alpha": draw.among(0.01, 0.3, 1.5)})}.get(name)
    return [draw.op(name, [x], draw.shapes[x], kind, options=options)]


@maker
def prelu(draw: Draw) -> list[int]:
    x, h, w, c = image(draw)
    if draw.is_quantised:
        slope = draw.graph.constant(
            draw.rng.integers(-127, 128, (1, 1, c)).astype(np.int8), Codes(0.01, draw.size(-5, 5))
        )
    else:
        slope = draw.graph.constant(draw.rng.standard_normal((1, 1, c)).astype(np.float32))
    return [draw.op("PRELU", [x, slope], (1, h, w, c))]


@maker
def softmax(draw: Draw) -> list[int]:
    n, c = draw.size(1, 4), draw.size(2, 40)
    x = draw.input(n, c, kind=draw.codes(0.005, 0.5) if draw.is_quantised else None)
    kind = Codes(1 / 256, -128) if draw.is_quantised else None
    return [draw.op("SOFTMAX", [x], (n, c), kind, options=("SoftmaxOptions", {"Beta": draw.among(1.0, 0.5)}))]


@maker
def reduction(draw: Draw) -> list[int]:
    x, h, w, c = image(draw)
    axes = draw.among((1, 2), (1,), (3,), (2, 3))
    keeps = bool(draw.size(0, 1))
    name = draw.among("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN")
    shape = [1 if a in axes else n for a, n in enumerate((1, h, w, c)) if keeps or a not in axes]
    kind = draw.kinds[x] if name.startswith("REDUCE") else draw.codes(0.05, 0.5) if draw.is_quantised else None
    return [draw.op(name, [x, draw.ints(axes)], shape, kind, options=("ReducerOptions", {"KeepDims": keeps}))]


@maker
def moved(draw: Draw) -> list[int]:
    """Operators that move elements, of an image that a convolution computes: they work in its layout."""
    x, h, w, c = image(draw)
    y = add_conv(draw, x, h, w, c)
    _, h, w, c = draw.shapes[y]
    kind = draw.kinds[y]
    name = draw.among("PAD", "TRANSPOSE", "CONCATENATION", "SPLIT", "SLICE", "STRIDED_SLICE", "MIRROR_PAD", "RESHAPE")
    if name == "PAD":
        amounts = draw.rng.integers(0, 3, (4, 2))
        shape = [n + int(a.sum()) for n, a in zip(draw.shapes[y], amounts, strict=True)]
        return [draw.op(name, [y, draw.ints(amounts)], shape, kind)]
    if name == "MIRROR_PAD":
        mode = draw.size(0, 1)
        amounts = np.array([[0, 0]] + [[draw.size(0, max(n - 2 + mode, 0)) for _ in range(2)] for n in (h, w, c)])
        shape = [n + int(a.sum()) for n, a in zip(draw.shapes[y], amounts, strict=True)]
        return [draw.op(name, [y, draw.ints(amounts)], shape, kind, options=("MirrorPadOptions", {"Mode": mode}))]
    if name == "TRANSPOSE":
        perm: list[int] = draw.rng.permutation(4).tolist()
        return [draw.op(name, [y, draw.ints(perm)], [draw.shapes[y][a] for a in perm], kind)]
    if name == "CONCATENATION":
        axis = draw.size(1, 3)
        shape = [n * (2 if a == axis else 1) for a, n in enumerate(draw.shapes[y])]
        fields = {"Axis": axis, "FusedActivationFunction": 0}
        other = draw.op("RELU", [y], draw.shapes[y], kind)
        return [draw.op(name, [y, other], shape, kind, options=("ConcatenationOptions", fields))]
    if name == "SPLIT":
        axis = draw.size(1, 3)
        n = draw.shapes[y][axis]
        count = draw.among(*(k for k in range(1, n + 1) if n % k == 0))
        shape = [m // count if a == axis else m for a, m in enumerate(draw.shapes[y])]
        options = ("SplitOptions", {"NumSplits": count})
        parts = draw.graph.ops(name, [draw.ints(axis), y], [(shape, kind)] * count, options)
        return [draw.known(part, shape, kind) for part in parts]
    if name == "RESHAPE":
        return [draw.op(name, [y, draw.ints((1, -1))], (1, h * w * c), kind)]
    begin = [draw.size(0, n - 1) for n in (1, h, w, c)]
    end = [draw.size(b + 1, n) for b, n in zip(begin, (1, h, w, c), strict=True)]
    if name == "SLICE":
        shape = [e - b for b, e in zip(begin, end, strict=True)]
        return [draw.op(name, [y, draw.ints(begin), draw.ints(shape)], shape, kind)]
    strides = [draw.size(1, 2) for _ in begin]
    shape = [len(range(*each)) for each in zip(begin, end, strides, strict=True)]
    inputs = [y, draw.ints(begin), draw.ints(end), draw.ints(strides)]
    return [draw.op(name, inputs, shape, kind, options=("StridedSliceOptions", {}))]


@maker
def resized(draw: Draw) -> list[int]:
    x, _, _, c = image(draw)
    size = draw.size(1, 15), draw.size(1, 15)
    bilinear, mode = draw.size(0, 1), draw.size(0, 2)
    name, kind = (
        ("RESIZE_BILINEAR", "ResizeBilinearOptions")
        if bilinear
        else (
            "RESIZE_NEAREST_NEIGHBOR",
            "ResizeNearestNeighborOptions",
        )
    )
    fields = {"AlignCorners": mode == 1, "HalfPixelCenters": mode == 2}
    return [draw.op(name, [x, draw.ints(size)], (1, *size, c), draw.kinds[x], options=(kind, fields))]


@maker
def converted(draw: Draw) -> list[int]:
    """From reals to integers, between scales, and back."""
    if not draw.is_quantised:
        x = draw.input(2, 30)
        q = draw.op("QUANTIZE", [x], (2, 30), draw.codes(0.01, 0.1))
        return [q, draw.op("DEQUANTIZE", [q], (2, 30), FLOAT)]
    x = draw.input(2, 30)
    q = draw.op("QUANTIZE", [x], (2, 30))
    return [q, draw.op("DEQUANTIZE", [q], (2, 30), FLOAT)]


@maker
def compared(draw: Draw) -> list[int]:
    x = draw.input(2, 30)
    other = draw.input(2, 30)
    name = draw.among("EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL")
    return [draw.op(name, [x, other], (2, 30), "bool")]


@maker
def products(draw: Draw) -> list[int]:
    n, m, k = draw.size(1, 5), draw.size(1, 6), draw.size(1, 7)
    flags = bool(draw.size(0, 1)), bool(draw.size(0, 1))
    a = draw.input(1, *((k, n) if flags[0] else (n, k)))
    b = draw.input(1, *((m, k) if flags[1] else (k, m)))
    fields = {"AdjX": flags[0], "AdjY": flags[1]}
    return [draw.op("BATCH_MATMUL", [a, b], (1, n, m), options=("BatchMatMulOptions", fields))]


@maker
def network(draw: Draw) -> list[int]:
    """Convolutions with a residual sum, a mean, a dense layer and a softmax."""
    x, h, w, c = image(draw)
    y = add_conv(draw, x, h, w, c)
    _, h, w, c = draw.shapes[y]
    weight, scales = draw.weight((c, 3, 3, c), 0, y)
    bias = draw.bias(c, y, scales)
    fields = {"Padding": 0, "StrideH": 1, "StrideW": 1, "FusedActivationFunction": 0}
    z = draw.op("CONV_2D", [y, weight] + ([] if bias < 0 else [bias]), (1, h, w, c), options=("Conv2DOptions", fields))
    total = draw.op("ADD", [y, z], (1, h, w, c), options=("AddOptions", {"FusedActivationFunction": 1}))
    mean = draw.op("MEAN", [total, draw.ints((1, 2))], (1, c), options=("ReducerOptions", {"KeepDims": False}))
    classes = draw.size(2, 10)
    weight, scales = draw.weight((classes, c), 0, mean)
    logits = draw.op("FULLY_CONNECTED", [mean, weight], (1, classes), options=("FullyConnectedOptions", {}))
    kind = Codes(1 / 256, -128) if draw.is_quantised else None
    return [draw.op("SOFTMAX", [logits], (1, classes), kind, options=("SoftmaxOptions", {"Beta": 1.0}))]
