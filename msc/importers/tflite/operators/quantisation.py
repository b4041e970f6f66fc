"""Between reals and integers, and between element types."""

from __future__ import annotations

import numpy as np

from msc.dialects import ms
from msc.dialects.arrays import dtype_text
from msc.dialects.element_types import element_type, is_float
from msc.importers.tflite.integers import has_codes, result_codes
from msc.importers.tflite.node import TfliteNode, TfliteValue
from msc.importers.tflite.operators.movement import requantized
from msc.importers.tflite.registry import importer
from msc.poly.compute import integer_range


@importer("QUANTIZE")
def _quantize(node: TfliteNode) -> TfliteValue:
    """Reals are divided by the scale and rounded, ties away from zero; integers are scaled."""
    x, result = node[0], result_codes(node)
    layout = node.layout(x)
    taken = layout.take(x)
    if has_codes(x):
        return layout.give(requantized(node, taken))
    if not is_float(x.dtype):
        raise node.failure("MSC0730", f"its input of {x.dtype} has no scale")
    real = node(ms.DivOp, node.cast(taken, "f32"), float(result.scale))
    half = node(ms.SelectOp, node(ms.LessOp, real, 0.0), node.scalar(-0.5, "f32"), node.scalar(0.5, "f32"))
    whole = node(ms.TruncOp, real)
    # Rounded by the part behind the point: a half that is added may round up a number next below it.
    rest = node(ms.SubOp, real, whole)
    is_over = node(ms.GreaterEqualOp, node(ms.AbsOp, rest), 0.5)
    step = node(ms.MulOp, half, 2.0)
    rounded = node(ms.SelectOp, is_over, node(ms.AddOp, whole, step), whole)
    low, high = integer_range(result.dtype)
    moved = node(ms.AddOp, rounded, float(result.zero)) if result.zero else rounded
    return layout.give(node.cast(node(ms.ClipOp, moved, min=float(low), max=float(high)), result.dtype))


@importer("DEQUANTIZE")
def _dequantize(node: TfliteNode) -> TfliteValue:
    x = node[0]
    layout = node.layout(x)
    if not has_codes(x) or x.quantisation is None:
        if not is_float(x.dtype):
            raise node.failure("MSC0730", f"its input of {x.dtype} has no scale")
        return layout.give(node.cast(layout.take(x), "f32"))
    found = x.quantisation
    many = found.scales.size > 1
    shape = [-1 if a == layout.axis(found.axis) else 1 for a in range(x.rank)] if many else []
    zeros = found.zeros.astype(np.dtype("i1" if x.dtype == "i8" else "u1" if x.dtype == "ui8" else "i2")).reshape(shape)
    zero = node.constant(zeros) if zeros.any() else None
    taken = layout.take(x)
    taken = node.unevaluated(taken) if taken.array is not None else taken
    return layout.give(node(ms.DequantizeOp, taken, node.constant(found.scales.reshape(shape)), zero))


@importer("CAST")
def _cast(node: TfliteNode) -> TfliteValue:
    target = node.output().dtype
    if target is None:
        raise node.failure("MSC0704", f"its result is of type {node.output().type}, which msc does not compute on")
    layout = node.layout(node[0])
    return layout.give(node(ms.CastOp, layout.take(node[0]), dtype=element_type(dtype_text(target))))


@importer("BITCAST")
def _bit_cast(node: TfliteNode) -> TfliteValue:
    target = node.output().dtype
    if target is None:
        raise node.failure("MSC0704", f"its result is of type {node.output().type}, which msc does not compute on")
    return node(ms.BitCastOp, node[0], dtype=element_type(dtype_text(target)))
