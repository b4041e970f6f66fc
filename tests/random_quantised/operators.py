"""One random quantised operator in an ONNX model, and the contract that its results keep."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto
from onnx.helper import make_graph, make_model, make_node, make_opsetid, make_tensor_value_info
from onnx.numpy_helper import from_array

Array: TypeAlias = NDArray[Any]
MICROSOFT = "com.microsoft"
_KINDS = {
    "uint8": TensorProto.UINT8,
    "int8": TensorProto.INT8,
    "int32": TensorProto.INT32,
    "float32": TensorProto.FLOAT,
    "uint16": TensorProto.UINT16,
    "int16": TensorProto.INT16,
}


@dataclass
class Case:
    """A model, arrays for its inputs, and how far its integers may lie from ONNX Runtime's: steps, and the share."""

    name: str
    model: ModelProto
    inputs: Mapping[str, Array]
    steps: int = 0
    share: float = 0.0


@dataclass
class Writer:
    """Nodes and initialisers of a model that is being made."""

    rng: np.random.Generator
    nodes: list[Any] = field(default_factory=list[Any])
    constants: dict[str, Array] = field(default_factory=dict[str, Array])
    inputs: dict[str, Array] = field(default_factory=dict[str, Array])

    def constant(self, array: Array) -> str:
        """An initialiser."""
        name = f"c{len(self.constants)}"
        self.constants[name] = array
        return name

    def given(self, array: Array) -> str:
        """An input."""
        name = f"x{len(self.inputs)}"
        self.inputs[name] = array
        return name

    def node(self, operator: str, inputs: Sequence[str], domain: str = "", outputs: int = 1, **attributes: Any) -> str:
        """A node; the name of its first output."""
        names = [f"v{len(self.nodes)}_{k}" for k in range(outputs)]
        self.nodes.append(make_node(operator, list(inputs), names, domain=domain, **attributes))
        return names[0]

    def integers(self, shape: Sequence[int], dtype: str) -> Array:
        """Any numbers of a type, its ends among them."""
        info = np.iinfo(dtype)
        values = self.rng.integers(info.min, info.max, shape, endpoint=True)
        return np.where(self.rng.random(shape) < 0.05, info.max, values).astype(dtype)

    def scale(self, shape: Sequence[int] = (), around: float = 0.02) -> Array:
        """Positive f32 numbers."""
        return np.asarray(self.rng.uniform(0.5, 2, shape) * around, np.float32)

    def zero(self, dtype: str, shape: Sequence[int] = ()) -> Array:
        """Zero points, 0 every third time."""
        return self.integers(shape, dtype) if self.rng.integers(3) else np.zeros(shape, dtype)

    def byte(self) -> str:
        """One of the types of bytes."""
        return str(self.rng.choice(["uint8", "int8"]))

    def flag(self) -> bool:
        """A coin."""
        return bool(self.rng.integers(2))

    def size(self, most: int = 9) -> int:
        """A size."""
        return int(self.rng.integers(1, most + 1))

    def model(self, outputs: Mapping[str, str], opset: int = 21) -> ModelProto:
        """The model whose outputs are these names, of these element types."""
        made = [make_tensor_value_info(n, _KINDS[a.dtype.name], a.shape) for n, a in self.inputs.items()]
        results = [make_tensor_value_info(name, _KINDS[kind], None) for name, kind in outputs.items()]
        initialisers = [from_array(array, name) for name, array in self.constants.items()]
        graph = make_graph(self.nodes, "g", made, results, initialisers)
        imports = [make_opsetid("", opset), make_opsetid(MICROSOFT, 1)]
        proto = make_model(graph, opset_imports=imports)
        proto.ir_version = 10
        return proto


Maker: TypeAlias = Callable[[Writer], Case]
MAKERS: dict[str, Maker] = {}


def maker(function: Maker) -> Maker:
    """Declare a maker of cases, under its name."""
    MAKERS[function.__name__] = function
    return function


def case(name: str, seed: int) -> Case:
    """The case of a maker and a seed."""
    return MAKERS[name](Writer(np.random.default_rng([seed, sum(map(ord, name))])))


def _done(w: Writer, name: str, result: str, dtype: str, steps: int = 0, share: float = 0.0) -> Case:
    return Case(name, w.model({result: dtype}), w.inputs, steps, share)


def _operand(w: Writer, shape: Sequence[int], dtype: str, known: bool = False) -> tuple[str, str, str]:
    """Values, a scale and a zero point of a whole tensor."""
    values = w.integers(shape, dtype)
    return (
        w.constant(values) if known else w.given(values),
        w.constant(w.scale()),
        w.constant(w.zero(dtype)),
    )


def _target(w: Writer, dtype: str, around: float) -> tuple[str, str]:
    return w.constant(w.scale(around=around)), w.constant(w.zero(dtype))


@maker
def quantize(w: Writer) -> Case:
    """Floats near ties, beyond the range, infinite; one scale, or one an index of an axis."""
    dtype = str(w.rng.choice(["uint8", "int8", "uint16", "int16"]))
    shape = [w.size(), w.size(), w.size(20)]
    axis = int(w.rng.integers(3)) if w.flag() else None
    many = () if axis is None else (shape[axis],)
    scale = np.exp2(w.rng.integers(-6, 2, many)).astype(np.float32) if w.flag() else w.scale(many, 0.1)
    x = (w.rng.integers(-70000, 70000, shape) * 0.5 * scale.min()).astype(np.float32)
    x = np.where(w.rng.random(shape) < 0.05, np.float32(np.inf), x).astype(np.float32)
    inputs = [w.given(x), w.constant(scale), w.constant(w.zero(dtype, many))]
    result = w.node("QuantizeLinear", inputs) if axis is None else w.node("QuantizeLinear", inputs, axis=axis)
    return _done(w, "quantize", result, dtype)


@maker
def dequantize(w: Writer) -> Case:
    """Of 8, 16 and 32 bits, by tensor and by axis."""
    dtype = str(w.rng.choice(["uint8", "int8", "uint16", "int16", "int32"]))
    shape = [w.size(), w.size(), w.size(20)]
    many = (shape[1],) if w.flag() else ()
    zero = np.zeros(many, dtype) if dtype == "int32" else w.zero(dtype, many)
    inputs = [w.given(w.integers(shape, dtype)), w.constant(w.scale(many)), w.constant(zero)]
    return _done(w, "dequantize", w.node("DequantizeLinear", inputs, axis=1), "float32")


@maker
def matmul_integer(w: Writer) -> Case:
    """Zero points of both operands, one or one a row and a column; sums that are exact or wrap."""
    m, k, n, a_type, b_type = w.size(), w.size(70), w.size(40), w.byte(), w.byte()
    a, b = w.given(w.integers([m, k], a_type)), w.integers([k, n], b_type)
    inputs = [a, w.constant(b) if w.flag() else w.given(b)]
    inputs += [w.constant(w.zero(a_type)), w.constant(w.zero(b_type, (n,) if w.flag() else ()))]
    return _done(w, "matmul_integer", w.node("MatMulInteger", inputs), "int32")


def _image(w: Writer) -> tuple[list[int], list[int], dict[str, Any]]:
    """The shapes of an image and its weights, and the attributes of the convolution."""
    group = w.size(3)
    inputs, outputs = group * w.size(4), group * w.size(4)
    kernel = [w.size(3), w.size(3)]
    stride, pads = [w.size(2), w.size(2)], [int(p) for p in w.rng.integers(0, 2, 4)]
    shape = [w.size(2), inputs, kernel[0] + w.size(6), kernel[1] + w.size(6)]
    attributes = {"group": group, "strides": stride, "pads": pads, "kernel_shape": kernel}
    return shape, [outputs, inputs // group, *kernel], attributes


@maker
def conv_integer(w: Writer) -> Case:
    """Padding that is the zero point, groups, strides."""
    shape, weights, attributes = _image(w)
    inputs = [w.given(w.integers(shape, "uint8")), w.constant(w.integers(weights, w.byte()))]
    zero = w.zero(w.constants["c0"].dtype.name)
    inputs += [w.constant(w.zero("uint8")), w.constant(zero)]
    return _done(w, "conv_integer", w.node("ConvInteger", inputs, **attributes), "int32")


@maker
def qlinear_conv(w: Writer) -> Case:
    """One scale, or one a channel; a bias; weights of either sign of byte."""
    shape, weights, attributes = _image(w)
    x_type = w.byte()
    w_type = "int8" if x_type == "int8" else w.byte()
    many = (weights[0],) if w.flag() else ()
    zero = np.zeros(many, w_type) if many else w.zero(w_type)
    inputs = [*_operand(w, shape, x_type), w.constant(w.integers(weights, w_type))]
    inputs += [w.constant(w.scale(many)), w.constant(zero), *_target(w, x_type, 0.5)]
    if w.flag():
        inputs.append(w.constant(w.rng.integers(-20000, 20000, weights[0]).astype(np.int32)))
    return _done(w, "qlinear_conv", w.node("QLinearConv", inputs, **attributes), x_type)


@maker
def qlinear_matmul(w: Writer) -> Case:
    """Matrices; one scale for each operand, or one a column of the right one."""
    m, k, n, a_type = w.size(), w.size(70), w.size(40), w.byte()
    b_type = "int8" if a_type == "int8" else w.byte()
    many = (n,) if w.flag() else ()
    a = _operand(w, [m, k], a_type)
    b = [w.constant(w.integers([k, n], b_type)), w.constant(w.scale(many)), w.constant(w.zero(b_type, many))]
    return _done(w, "qlinear_matmul", w.node("QLinearMatMul", [*a, *b, *_target(w, a_type, 0.5)]), a_type)


@maker
def dynamic_quantize(w: Writer) -> Case:
    """Ranges on both sides of 0 and on one."""
    x = (w.rng.standard_normal([w.size(), w.size(40)]) * 3 + w.rng.integers(-4, 5)).astype(np.float32)
    return _done(w, "dynamic_quantize", w.node("DynamicQuantizeLinear", [w.given(x)], outputs=3), "uint8")


def _elementwise(operator: str) -> None:
    def made(w: Writer) -> Case:
        shape, dtype = [w.size(3), w.size(), w.size(33)], w.byte()
        other = shape if w.flag() else [1, shape[1], 1]
        around = 0.05 if operator == "QLinearAdd" else 0.1
        inputs = [*_operand(w, shape, dtype), *_operand(w, other, dtype), *_target(w, dtype, around)]
        return _done(w, operator, w.node(operator, inputs, MICROSOFT), dtype, steps=1, share=0.01)

    MAKERS[operator] = made


_elementwise("QLinearAdd")
_elementwise("QLinearMul")


def _unary(operator: str, around: float, **attributes: Any) -> None:
    def made(w: Writer) -> Case:
        shape, dtype = [w.size(3), w.size(), w.size(33)], w.byte()
        target = _target(w, dtype, around)
        more = dict(attributes)
        if operator == "QLinearSoftmax":
            target = (
                w.constant(np.array(1 / 256, np.float32)),
                w.constant(np.array(0 if dtype == "uint8" else -128, dtype)),
            )
            more["axis"] = -1
        inputs = [*_operand(w, shape, dtype), *target]
        return _done(w, operator, w.node(operator, inputs, MICROSOFT, **more), dtype, steps=1, share=0.01)

    MAKERS[operator] = made


_unary("QLinearSigmoid", 1 / 256)
_unary("QLinearLeakyRelu", 0.02, alpha=0.1)
_unary("QLinearSoftmax", 1 / 256, opset=13)


@maker
def concat(w: Writer) -> Case:
    """Two to four tensors of other scales."""
    dtype, count = w.byte(), w.size(3) + 1
    y = _target(w, dtype, 0.02)
    parts = [part for _ in range(count) for part in _operand(w, [2, w.size(), 5], dtype)]
    return _done(w, "concat", w.node("QLinearConcat", [*y, *parts], MICROSOFT, axis=1), dtype)


def _pool(operator: str) -> None:
    def made(w: Writer) -> Case:
        dtype = w.byte()
        kernel = [w.size(3), w.size(3)]
        shape = [w.size(2), w.size(5), kernel[0] + w.size(5), kernel[1] + w.size(5)]
        inputs = [*_operand(w, shape, dtype), *_target(w, dtype, 0.02)]
        more: dict[str, Any] = {}
        if operator == "QLinearAveragePool":
            pads = [int(w.rng.integers(0, k)) for k in (*kernel, *kernel)]
            more = {"kernel_shape": kernel, "strides": [w.size(2), w.size(2)], "pads": pads}
            more["count_include_pad"] = int(w.flag())
        return _done(w, operator, w.node(operator, inputs, MICROSOFT, **more), dtype, steps=1, share=0.01)

    MAKERS[operator] = made


_pool("QLinearGlobalAveragePool")
_pool("QLinearAveragePool")


@maker
def gemm(w: Writer) -> Case:
    """Either result, with a bias of the scale of the sums; a transposed weight."""
    m, k, n, a_type = w.size(), w.size(70), w.size(40), w.byte()
    b_type = "int8" if a_type == "int8" else w.byte()
    many, turned = ((n,) if w.flag() else ()), w.flag()
    a = _operand(w, [m, k], a_type)
    weights = w.integers([n, k] if turned else [k, n], b_type)
    b = [w.constant(weights), w.constant(w.scale(many)), w.constant(w.zero(b_type, many))]
    inputs = [*a, *b, w.constant(w.rng.integers(-20000, 20000, n).astype(np.int32))]
    integers = w.flag()
    inputs += _target(w, a_type, 0.5) if integers else ()
    made = w.node("QGemm", inputs, MICROSOFT, transB=int(turned), alpha=1.0)
    return _done(w, "gemm", made, a_type if integers else "float32")


@maker
def product_to_float(w: Writer) -> Case:
    """Products to f32, of given and of dynamic scales, with a bias."""
    m, k, n, b_type = w.size(), w.size(70), w.size(40), w.byte()
    many = (n,) if w.flag() else ()
    weights = [w.constant(w.integers([k, n], b_type)), w.constant(w.scale(many)), w.constant(w.zero(b_type, many))]
    bias = w.constant(w.rng.standard_normal(n).astype(np.float32))
    if w.flag():
        a, a_scale, a_zero = _operand(w, [m, k], "uint8")
        inputs = [a, weights[0], a_scale, weights[1], a_zero, weights[2], bias]
        return _done(w, "product_to_float", w.node("MatMulIntegerToFloat", inputs, MICROSOFT), "float32")
    inputs = [w.given(w.rng.standard_normal([m, k]).astype(np.float32)), *weights, bias]
    return _done(w, "product_to_float", w.node("DynamicQuantizeMatMul", inputs, MICROSOFT), "float32")


@maker
def product_of_bits(w: Writer) -> Case:
    """Weights of 4 and 8 bits by blocks, with and without zero points; a size of k that no block divides."""
    m, k, n = w.size(), w.size(99), w.size(17)
    bits, block = int(w.rng.choice([4, 8])), int(w.rng.choice([16, 32]))
    blocks = -(-k // block)
    weights = w.rng.integers(0, 256, [n, blocks, block * bits // 8]).astype(np.uint8)
    inputs = [w.given(w.rng.standard_normal([m, k]).astype(np.float32)), w.constant(weights)]
    inputs.append(w.constant(w.scale((n, blocks))))
    if w.flag():
        inputs.append(w.constant(w.rng.integers(0, 256, [n, -(-blocks * bits // 8)]).astype(np.uint8)))
    made = w.node("MatMulNBits", inputs, MICROSOFT, K=k, N=n, bits=bits, block_size=block)
    return _done(w, "product_of_bits", made, "float32")
