"""Quantised operators, in integers and with the rounding that the standard asks for: half to even."""

from __future__ import annotations

from msc.dialects import ms
from msc.dialects.element_types import is_float
from msc.importers.onnx.narrow import NARROW, NarrowType, decoded, encoded
from msc.importers.onnx.node import Node
from msc.importers.onnx.operators.convolution import convolution
from msc.importers.onnx.operators.linear import product
from msc.importers.onnx.reading.tensors import dtype_of
from msc.importers.onnx.registry import importer
from msc.importers.onnx.values import OnnxValue
from msc.poly.compute import integer_range


def _spread(node: Node, parameter: OnnxValue, x: OnnxValue) -> OnnxValue:
    """A scale or zero point as it broadcasts to `x`: one, one an index of `axis`, or one a block along it."""
    if parameter.array is not None and parameter.array.size == 1:
        return node.reshape(parameter, ())
    if parameter.rank == 0 or parameter.shape == (1,):
        return node.reshape(parameter, ())
    axis = node.axis(node.int_("axis", 1), x.rank)
    block = node.int_("block_size", 0)
    if parameter.rank == 1 and not block:
        return node.reshape(parameter, [-1 if a == axis else 1 for a in range(x.rank)])
    size = node.size_of(x, axis)
    each = block or -(-size // parameter.shape[axis])
    return node(ms.GatherOp, parameter, node.constant(node.arange(size) // each), axis=axis)


def saturated(node: Node, x: OnnxValue, dtype: str) -> OnnxValue:
    """A float rounded to even and cut to the range of an integer type."""
    low, high = integer_range(dtype)
    clipped = node(ms.MinimumOp, node(ms.MaximumOp, node(ms.RoundOp, x), float(low)), float(high))
    return node.cast(clipped, dtype)


@importer("QuantizeLinear")
def _quantize(node: Node) -> OnnxValue:
    x, scale, zero = node[0], node[1], node.get(2)
    given = node.int_("output_dtype", 0)
    target = NARROW.get(given if zero is None else zero.narrow or 0)
    dtype = "" if target else zero.dtype if zero is not None else dtype_of(given, node.label) if given else "ui8"
    precision = node.int_("precision", 0)
    compute = dtype_of(precision, node.label) if precision else scale.dtype if is_float(scale.dtype) else "f32"
    wide = node(ms.DivOp, node.cast(x, compute), node.cast(_spread(node, scale, x), compute))
    spread = None if zero is None else decoded(node, _spread(node, zero, x))
    if target is not None:
        return _narrowed(node, node.cast(wide, "f32"), spread, target)
    return _quantized(node, node.cast(wide, "f32"), spread, dtype)


def _narrowed(node: Node, x: OnnxValue, zero: OnnxValue | None, target: NarrowType) -> OnnxValue:
    """To a type that is kept as codes; floats are rounded to it as they are, with the zero point 0."""
    if not target.is_integer:
        return encoded(node, x, target, saturate=node.flag("saturate", True))
    moved = node(ms.RoundOp, x) if zero is None else node(ms.AddOp, node(ms.RoundOp, x), node.cast(zero, "f32"))
    low, high = float(target.table.min()), float(target.table.max())
    return encoded(node, node(ms.ClipOp, moved, min=low, max=high), target)


def _quantized(node: Node, x: OnnxValue, zero: OnnxValue | None, dtype: str) -> OnnxValue:
    """Rounded first, then moved by the zero point, then cut."""
    rounded = node(ms.RoundOp, x)
    moved = rounded if zero is None else node(ms.AddOp, rounded, node.cast(zero, x.dtype))
    return saturated(node, moved, dtype)


@importer("DequantizeLinear")
def _dequantize(node: Node) -> OnnxValue:
    x, scale, zero = decoded(node, node[0]), node[1], node.get(2)
    given = node.int_("output_dtype", 0)
    dtype = dtype_of(given, node.label) if given else scale.dtype
    wide = "i32" if not is_float(x.dtype) else "f32"
    moved = node.cast(x, wide)
    if zero is not None:
        moved = node(ms.SubOp, moved, node.cast(decoded(node, _spread(node, zero, x)), wide))
    compute = "f32" if scale.dtype in ("f16", "bf16") else scale.dtype
    return node.cast(node(ms.MulOp, node.cast(moved, compute), node.cast(_spread(node, scale, x), compute)), dtype)


@importer("DynamicQuantizeLinear")
def _dynamic_quantize(node: Node) -> list[OnnxValue]:
    """To ui8, with the scale that the extremes of x (and 0) ask for."""
    x = node[0]
    high = node(ms.MaximumOp, node(ms.ReduceMaxOp, x), 0.0)
    low = node(ms.MinimumOp, node(ms.ReduceMinOp, x), 0.0)
    scale = node(ms.DivOp, node(ms.SubOp, high, low), 255.0)
    usable = node(ms.SelectOp, node(ms.EqualOp, scale, 0.0), node.scalar(1, x.dtype), scale)
    zero = saturated(node, node(ms.DivOp, node(ms.SubOp, node.scalar(0, x.dtype), low), usable), "ui8")
    return [_quantized(node, node(ms.DivOp, x, usable), zero, "ui8"), scale, zero]


def _centred(node: Node, x: OnnxValue, zero: OnnxValue | None, shape: list[int] | None = None) -> OnnxValue:
    """An integer tensor as i32 without its zero point."""
    wide = node.cast(x, "i32")
    if zero is None:
        return wide
    moved = node.cast(zero, "i32")
    if zero.rank == 1 and zero.shape[0] == 1:
        moved = node.reshape(moved, ())
    elif shape is not None and zero.rank == 1:
        moved = node.reshape(moved, shape)
    return node(ms.SubOp, wide, moved)


def _weights(
    node: Node, x: OnnxValue, weights: OnnxValue, zero: OnnxValue | None, shape: list[int] | None = None
) -> OnnxValue:
    """The right operand of a product with `x` as i32 without its zero point; passes see which bytes it is made of."""
    return _centred(node, weights if x.array is not None else node.unevaluated(weights), zero, shape)


def _rows(a: OnnxValue) -> list[int]:
    return [-1, 1] if a.rank > 1 else [-1]


@importer("MatMulInteger")
def _matmul_integer(node: Node) -> OnnxValue:
    a, b = node[0], node[1]
    return product(node, _centred(node, a, node.get(2), _rows(a)), _weights(node, a, b, node.get(3)))


@importer("ConvInteger")
def _conv_integer(node: Node) -> OnnxValue:
    x, w = node[0], node[1]
    channels = [-1, *(1 for _ in range(w.rank - 1))]
    return convolution(node, _centred(node, x, node.get(2)), _weights(node, x, w, node.get(3), channels), None)


def _requantized(node: Node, total: OnnxValue, scales: OnnxValue, scale: OnnxValue, zero: OnnxValue) -> OnnxValue:
    """An i32 sum in real units, quantised again."""
    real = node(ms.DivOp, node(ms.MulOp, node.cast(total, "f32"), node.cast(scales, "f32")), node.cast(scale, "f32"))
    return _quantized(node, real, zero, zero.dtype)


def _scalar(node: Node, x: OnnxValue) -> OnnxValue:
    return node.reshape(x, ()) if x.rank == 1 and x.shape[0] == 1 else x


@importer("QLinearMatMul")
def _qlinear_matmul(node: Node) -> OnnxValue:
    a_scale, a_zero, b_scale, b_zero, y_scale, y_zero = (_scalar(node, node[i]) for i in (1, 2, 4, 5, 6, 7))
    total = product(node, _centred(node, node[0], a_zero, _rows(node[0])), _weights(node, node[0], node[3], b_zero))
    if a_scale.rank == 1:
        a_scale = node.reshape(a_scale, (a_scale.shape[0], 1))
    scales = node(ms.MulOp, node.cast(a_scale, "f32"), node.cast(b_scale, "f32"))
    return _requantized(node, total, scales, y_scale, y_zero)


@importer("QLinearConv")
def _qlinear_conv(node: Node) -> OnnxValue:
    x_scale, x_zero, w_scale, w_zero, y_scale, y_zero = (_scalar(node, node[i]) for i in (1, 2, 4, 5, 6, 7))
    rank = node[0].rank
    centred = _weights(node, node[0], node[3], w_zero, [-1, *(1 for _ in range(rank - 1))])
    total = convolution(node, _centred(node, node[0], x_zero), centred, node.get(8))
    if w_scale.rank == 1:
        w_scale = node.reshape(w_scale, (w_scale.shape[0], *(1 for _ in range(rank - 2))))
    return _requantized(node, total, node(ms.MulOp, x_scale, w_scale), y_scale, y_zero)
