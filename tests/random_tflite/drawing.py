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


@maker
def shaped(draw: Draw) -> list[int]:
    """Operators on shapes, indices and blocks, of an image that a convolution computes."""
    x, h, w, c = image(draw)
    kind = draw.kinds[x]
    name = draw.among(
        "PACK", "UNPACK", "GATHER", "ARG_MAX", "ARG_MIN", "EXPAND_DIMS", "SQUEEZE", "SPLIT_V", "SPACE_TO_DEPTH",
        "DEPTH_TO_SPACE", "SPACE_TO_BATCH_ND", "STRIDED_SLICE",
    )  # fmt: skip
    if name == "PACK":
        axis = draw.size(0, 4)
        shape = [1, h, w, c]
        shape.insert(axis, 2)
        return [draw.op(name, [x, x], shape, kind, options=("PackOptions", {"Axis": axis, "ValuesCount": 2}))]
    if name == "UNPACK":
        axis = draw.size(1, 3)
        shape = [n for a, n in enumerate((1, h, w, c)) if a != axis]
        count = (1, h, w, c)[axis]
        options = ("UnpackOptions", {"Axis": axis, "Num": count})
        return [draw.known(t, shape, kind) for t in draw.graph.ops(name, [x], [(shape, kind)] * count, options)]
    if name == "GATHER":
        axis, count = draw.size(1, 3), draw.size(1, 6)
        indices = draw.rng.integers(0, (1, h, w, c)[axis], count)
        shape = [count if a == axis else n for a, n in enumerate((1, h, w, c))]
        return [draw.op(name, [x, draw.ints(indices)], shape, kind, options=("GatherOptions", {"Axis": axis}))]
    if name in ("ARG_MAX", "ARG_MIN"):
        axis = draw.size(1, 3)
        shape = [n for a, n in enumerate((1, h, w, c)) if a != axis]
        options = ("ArgMaxOptions" if name == "ARG_MAX" else "ArgMinOptions", {"OutputType": 2})
        return [draw.op(name, [x, draw.ints((axis,))], shape, "int32", options=options)]
    if name == "EXPAND_DIMS":
        axis = draw.size(0, 3)
        shape = [1, h, w, c]
        shape.insert(axis, 1)
        return [draw.op(name, [x, draw.ints((axis,))], shape, kind)]
    if name == "SQUEEZE":
        return [draw.op(name, [x], (h, w, c), kind, options=("SqueezeOptions", {"SqueezeDims": (0,)}))]
    if name == "SPLIT_V":
        first = draw.size(0, c)
        sizes = [n for n in (first, c - first) if n]
        results: list[tuple[Sequence[int], Kind]] = [((1, h, w, n), kind) for n in sizes]
        options = ("SplitVOptions", {"NumSplits": len(sizes)})
        parts = draw.graph.ops(name, [x, draw.ints(sizes), draw.ints(3)], results, options)
        return [draw.known(part, shape, kind) for part, (shape, _) in zip(parts, results, strict=True)]
    if name == "STRIDED_SLICE":
        begin, end = (0, h - 1, draw.size(0, w - 1), 0), (1, -h - 1, w, c)
        fields = {"BeginMask": 1, "EndMask": draw.among(1, 3), "ShrinkAxisMask": draw.among(0, 1)}
        inputs = [x, draw.ints(begin), draw.ints(end), draw.ints((1, -1, 2, 1))]
        shape = [1, h, len(range(begin[2], w, 2)), c][fields["ShrinkAxisMask"] :]
        return [draw.op(name, inputs, shape, kind, options=("StridedSliceOptions", fields))]
    block = draw.size(1, 3)
    y = draw.input(1, 2 * block, 3 * block, 4 * block * block, kind=kind)
    n = 4 * block * block
    if name == "SPACE_TO_DEPTH":
        options = ("SpaceToDepthOptions", {"BlockSize": block})
        return [draw.op(name, [y], (1, 2, 3, n * block * block), kind, options=options)]
    if name == "DEPTH_TO_SPACE":
        options = ("DepthToSpaceOptions", {"BlockSize": block})
        return [draw.op(name, [y], (1, 2 * block * block, 3 * block * block, 4), kind, options=options)]
    # TFLM surrounds integers with what its memory happens to hold.
    more = 0 if draw.is_quantised else block
    amounts = draw.ints(((0, more), (more, 0)))
    z = draw.op(
        name, [y, draw.ints((block, block)), amounts], (block * block, 2 + more // block, 3 + more // block, n), kind
    )
    inputs = [z, draw.ints((block, block)), amounts]
    return [z, draw.op("BATCH_TO_SPACE_ND", inputs, (1, 2 * block, 3 * block, n), kind)]


@maker
def elements(draw: Draw) -> list[int]:
    """Functions that TensorFlow Lite for Microcontrollers has of floats alone, or by another formula of integers."""
    x = draw.input(2, 40, kind=draw.codes(0.01, 0.1) if draw.is_quantised else None)
    if draw.is_quantised:
        other = draw.input(2, 40, kind=draw.codes(0.01, 0.1))
        name = draw.among("SQUARED_DIFFERENCE", "MAXIMUM", "MINIMUM")
        if name != "SQUARED_DIFFERENCE":
            kind = draw.kinds[x]
            return [draw.op(name, [x, draw.input(2, 40, kind=kind)], (2, 40), kind)]
        return [draw.op(name, [x, other], (2, 40), draw.codes(0.05, 0.5))]
    name = draw.among(
        "ABS", "NEG", "EXP", "SIN", "COS", "FLOOR", "CEIL", "ROUND", "SQUARE", "MAXIMUM", "SQUARED_DIFFERENCE"
    )
    inputs = [x] if name not in ("MAXIMUM", "SQUARED_DIFFERENCE") else [x, draw.input(2, 40)]
    return [draw.op(name, inputs, (2, 40))]


@maker
def wide(draw: Draw) -> list[int]:
    """Numbers of 16 bits with weights of 8: sums in 64 bits. Of floats, a layer as any other."""
    if not draw.is_quantised:
        return dense(draw)
    kind = Codes(float(np.float32(draw.rng.uniform(1e-4, 1e-3))), 0, "int16")
    out = Codes(float(np.float32(draw.rng.uniform(1e-3, 4e-3))), 0, "int16")
    name = draw.among(
        "CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "ADD", "MUL", "RELU", "AVERAGE_POOL_2D", "TANH", "LOGISTIC"
    )
    if name == "FULLY_CONNECTED":
        x, o = draw.input(2, 24, kind=kind), draw.size(1, 9)
        weight, scales = draw.weight((o, 24), 0, x, many=False)
        inputs = [x, weight, *_wide_bias(draw, o, kind, scales)]
        return [draw.op(name, inputs, (2, o), out, options=("FullyConnectedOptions", {}))]
    x = draw.input(1, 5, 6, 4, kind=kind)
    shape = (1, 5, 6, 4)
    if name in ("ADD", "MUL"):
        other = draw.input(*shape, kind=Codes(kind.scales[0] * 1.5, 0, "int16"))
        fields = {"FusedActivationFunction": draw.among(0, 1)}
        if name == "ADD":
            fields["PotScaleInt16"] = False
        return [draw.op(name, [x, other], shape, out, options=(f"{name.title()}Options", fields))]
    if name == "RELU":
        return [draw.op(name, [x], shape, out)]
    if name in ("TANH", "LOGISTIC"):
        scale = draw.among(2.0**-12, 2.0**-11, float(np.float32(0.0007)))
        y = draw.input(1, 5, 6, 4, kind=Codes(scale, 0, "int16"))
        return [draw.op(name, [y], shape, Codes(2.0**-15, 0, "int16"))]
    if name == "AVERAGE_POOL_2D":
        fields = {"Padding": 0, "StrideH": 2, "StrideW": 2, "FilterHeight": 3, "FilterWidth": 3}
        return [draw.op(name, [x], (1, 3, 3, 4), kind, options=("Pool2DOptions", fields))]
    is_deep = name == "DEPTHWISE_CONV_2D"
    weight, scales = draw.weight((1, 3, 3, 4) if is_deep else (7, 3, 3, 4), 3 if is_deep else 0, x)
    inputs = [x, weight, *_wide_bias(draw, len(scales), kind, scales)]
    fields = {"Padding": 0, "StrideH": 1, "StrideW": 1, "FusedActivationFunction": draw.among(0, 1)}
    if is_deep:
        fields["DepthMultiplier"] = 1
    options = ("DepthwiseConv2DOptions" if is_deep else "Conv2DOptions", fields)
    return [draw.op(name, inputs, (1, 5, 6, 4 if is_deep else 7), out, options=options)]


@maker
def lstm(draw: Draw) -> list[int]:
    n, t, i, u = draw.size(1, 2), draw.size(1, 4), draw.size(1, 6), draw.size(1, 6)
    major = bool(draw.size(0, 1))
    x = draw.input(*((t, n, i) if major else (n, t, i)))
    hidden = Codes(float(np.float32(1 / 128)), draw.size(-5, 5)) if draw.is_quantised else FLOAT
    cell = Codes(2.0 ** -draw.size(10, 13), 0, "int16") if draw.is_quantised else FLOAT
    inputs = [x] + [-1] * 23
    graph, given = draw.graph, draw.kinds[x]
    for k in range(8):
        shape = (u, i) if k < 4 else (u, u)
        scale = float(np.float32(draw.rng.uniform(0.002, 0.01)))
        if draw.is_quantised:
            inputs[1 + k] = graph.constant(draw.rng.integers(-127, 128, shape).astype(np.int8), Codes(scale))
        else:
            inputs[1 + k] = graph.constant(draw.rng.standard_normal(shape).astype(np.float32))
        if k < 4 and isinstance(given, Codes):
            data = draw.rng.integers(-2000, 2000, u).astype(np.int32)
            inputs[12 + k] = graph.constant(data, Codes(scale * given.scales[0], 0, "int32"))
        elif k < 4:
            inputs[12 + k] = graph.constant(draw.rng.standard_normal(u).astype(np.float32))
    inputs[18], inputs[19] = graph.variable((n, u), hidden), graph.variable((n, u), cell)
    fields = {"FusedActivationFunction": 4, "CellClip": draw.among(0.0, 2.0), "TimeMajor": major}
    options = ("UnidirectionalSequenceLSTMOptions", fields)
    return [draw.op("UNIDIRECTIONAL_SEQUENCE_LSTM", inputs, (*((t, n) if major else (n, t)), u), hidden, options)]


def _wide_bias(draw: Draw, count: int, kind: Codes, scales: Array) -> list[int]:
    both = tuple(float(np.float32(s) * np.float32(kind.scales[0])) for s in scales)
    data = draw.rng.integers(-300000, 300000, count).astype(np.int64)
    return [draw.graph.constant(data, Codes(both, 0, "int64"))]
