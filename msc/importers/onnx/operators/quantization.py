"""Quantised operators, in integers and with the rounding that the standard asks for: half to even."""

from __future__ import annotations

from msc.dialects import ms
from msc.dialects.element_types import element_type, is_float
from msc.dialects.ms.quantisation import QUANTISED
from msc.importers.onnx.narrow import NARROW, NarrowType, decoded, encoded
from msc.importers.onnx.node import Node
from msc.importers.onnx.operators.convolution import convolution
from msc.importers.onnx.operators.linear import product
from msc.importers.onnx.reading.tensors import dtype_of
from msc.importers.onnx.registry import importer
from msc.importers.onnx.values import OnnxValue
from msc.poly.compute import integer_range

MICROSOFT = "com.microsoft"
"""The domain of the operators that ONNX Runtime and its quantiser add."""


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


def _moved(node: Node, zero: OnnxValue | None, x: OnnxValue) -> OnnxValue | None:
    """A zero point as it broadcasts to `x`; None for one that moves nothing: quantisers write zeros by channel."""
    if zero is None or (zero.array is not None and zero.narrow is None and not zero.array.any()):
        return None
    return _spread(node, decoded(node, zero), x)


@importer("QuantizeLinear")
@importer("QuantizeLinear", domain=MICROSOFT)
def _quantize(node: Node) -> OnnxValue:
    x, scale, zero = node[0], node[1], node.get(2)
    given = node.int_("output_dtype", 0)
    target = NARROW.get(given if zero is None else zero.narrow or 0)
    dtype = "" if target else zero.dtype if zero is not None else dtype_of(given, node.label) if given else "ui8"
    precision = node.int_("precision", 0)
    compute = dtype_of(precision, node.label) if precision else scale.dtype if is_float(scale.dtype) else "f32"
    x, spread = node.cast(x, compute), node.cast(_spread(node, scale, x), compute)
    moved = _moved(node, zero, x)
    if target is None and dtype in QUANTISED:
        return quantized(node, x, spread, moved, dtype)
    real = node.cast(node(ms.DivOp, x, spread), "f32")
    return _narrowed(node, real, moved, target) if target else _saturated(node, real, moved, dtype)


def quantized(node: Node, x: OnnxValue, scale: OnnxValue, zero: OnnxValue | None, dtype: str) -> OnnxValue:
    """Reals as integers of a scale and a zero point."""
    return node(ms.QuantizeOp, x, scale, zero, dtype=element_type(dtype))


def dequantized(node: Node, x: OnnxValue, scale: OnnxValue, zero: OnnxValue | None) -> OnnxValue:
    """Integers as reals; of known ones nothing is computed at import, so that passes see what weights are."""
    return node(ms.DequantizeOp, x if x.array is None else node.unevaluated(x), scale, zero)


def _narrowed(node: Node, x: OnnxValue, zero: OnnxValue | None, target: NarrowType) -> OnnxValue:
    """To a type that is kept as codes; floats are rounded to it as they are, with the zero point 0."""
    if not target.is_integer:
        return encoded(node, x, target, saturate=node.flag("saturate", True))
    moved = node(ms.RoundOp, x) if zero is None else node(ms.AddOp, node(ms.RoundOp, x), node.cast(zero, "f32"))
    low, high = float(target.table.min()), float(target.table.max())
    return encoded(node, node(ms.ClipOp, moved, min=low, max=high), target)


def _saturated(node: Node, x: OnnxValue, zero: OnnxValue | None, dtype: str) -> OnnxValue:
    """Rounded first, then moved by the zero point, then cut: to a type that is no quantised one."""
    rounded = node(ms.RoundOp, x)
    moved = rounded if zero is None else node(ms.AddOp, rounded, node.cast(zero, x.dtype))
    low, high = integer_range(dtype)
    return node.cast(node(ms.MinimumOp, node(ms.MaximumOp, moved, float(low)), float(high)), dtype)


@importer("DequantizeLinear")
@importer("DequantizeLinear", domain=MICROSOFT)
def _dequantize(node: Node) -> OnnxValue:
    x, scale, zero = decoded(node, node[0]), node[1], node.get(2)
    given = node.int_("output_dtype", 0)
    dtype = dtype_of(given, node.label) if given else scale.dtype
    spread, moved = _spread(node, scale, x), _moved(node, zero, x)
    if not is_float(x.dtype):
        return node.cast(dequantized(node, x, spread, moved), dtype)
    moved_x = x if moved is None else node(ms.SubOp, x, node.cast(moved, x.dtype))
    compute = "f32" if scale.dtype in ("f16", "bf16") else scale.dtype
    return node.cast(node(ms.MulOp, node.cast(moved_x, compute), node.cast(spread, compute)), dtype)


@importer("DynamicQuantizeLinear")
def _dynamic_quantize(node: Node) -> list[OnnxValue]:
    return list(dynamically_quantized(node, node[0]))


def dynamically_quantized(node: Node, x: OnnxValue) -> tuple[OnnxValue, OnnxValue, OnnxValue]:
    """X as ui8, its scale and its zero point: those that the extremes of x (and 0) ask for."""
    high = node(ms.MaximumOp, node(ms.ReduceMaxOp, x), 0.0)
    low = node(ms.MinimumOp, node(ms.ReduceMinOp, x), 0.0)
    scale = node(ms.DivOp, node(ms.SubOp, high, low), 255.0)
    usable = node(ms.SelectOp, node(ms.EqualOp, scale, 0.0), node.scalar(1, x.dtype), scale)
    zero = quantized(node, node(ms.SubOp, node.scalar(0, x.dtype), low), usable, None, "ui8")
    return quantized(node, x, usable, zero, "ui8"), scale, zero


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
    return integer_product(node, a, node.get(2), b, node.get(3))


@importer("ConvInteger")
def _conv_integer(node: Node) -> OnnxValue:
    x, w = node[0], node[1]
    channels = [-1, *(1 for _ in range(w.rank - 1))]
    return convolution(node, _centred(node, x, node.get(2)), _weights(node, x, w, node.get(3), channels), None)


def _scalar(node: Node, x: OnnxValue) -> OnnxValue:
    return node.reshape(x, ()) if x.rank == 1 and x.shape[0] == 1 else x


def requantized(node: Node, total: OnnxValue, scales: OnnxValue, scale: OnnxValue, zero: OnnxValue) -> OnnxValue:
    """An i32 sum of `scales` quantised with `scale`: one factor, rounded twice, as ONNX Runtime computes it."""
    factor = node(ms.DivOp, node.cast(scales, "f32"), node.cast(scale, "f32"))
    return node(ms.RequantizeOp, total, factor, zero, dtype=element_type(zero.dtype))


def integer_product(
    node: Node, a: OnnxValue, a_zero: OnnxValue | None, b: OnnxValue, b_zero: OnnxValue | None
) -> OnnxValue:
    """Sums of products in i32; the zero point of `a` is one, or one a row, that of `b` one, or one a column."""
    return product(node, _centred(node, a, a_zero, _rows(a)), _weights(node, a, b, b_zero))


@importer("QLinearMatMul")
def _qlinear_matmul(node: Node) -> OnnxValue:
    a_scale, a_zero, b_scale, b_zero, y_scale, y_zero = (_scalar(node, node[i]) for i in (1, 2, 4, 5, 6, 7))
    total = integer_product(node, node[0], a_zero, node[3], b_zero)
    if a_scale.rank == 1:
        a_scale = node.reshape(a_scale, (a_scale.shape[0], 1))
    scales = node(ms.MulOp, node.cast(a_scale, "f32"), node.cast(b_scale, "f32"))
    return requantized(node, total, scales, y_scale, y_zero)


@importer("QLinearConv")
def _qlinear_conv(node: Node) -> OnnxValue:
    x_scale, x_zero, w_scale, w_zero, y_scale, y_zero = (_scalar(node, node[i]) for i in (1, 2, 4, 5, 6, 7))
    rank = node[0].rank
    centred = _weights(node, node[0], node[3], w_zero, [-1, *(1 for _ in range(rank - 1))])
    total = convolution(node, _centred(node, node[0], x_zero), centred, node.get(8))
    if w_scale.rank == 1:
        w_scale = node.reshape(w_scale, (w_scale.shape[0], *(1 for _ in range(rank - 2))))
    return requantized(node, total, node(ms.MulOp, x_scale, w_scale), y_scale, y_zero)
