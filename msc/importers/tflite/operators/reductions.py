"""Reductions over axes."""

from __future__ import annotations

import math

from msc.dialects import ms
from msc.dialects.ms.base import MsOp
from msc.importers.tflite import fixed_point
from msc.importers.tflite.integers import by_factors, codes, is_quantised, result_codes
from msc.importers.tflite.node import TfliteNode, TfliteValue
from msc.importers.tflite.operators.arithmetic import check_one_scale
from msc.importers.tflite.registry import importer

_REDUCTIONS: dict[str, type[MsOp]] = {
    "MEAN": ms.ReduceMeanOp,
    "SUM": ms.ReduceSumOp,
    "REDUCE_MAX": ms.ReduceMaxOp,
    "REDUCE_MIN": ms.ReduceMinOp,
    "REDUCE_PROD": ms.ReduceProdOp,
    "REDUCE_ANY": ms.ReduceAnyOp,
    "REDUCE_ALL": ms.ReduceAllOp,
}


@importer(*_REDUCTIONS)
def _reduction(node: TfliteNode) -> TfliteValue:
    x, name = node[0], node.record.name
    axes = sorted({node.axis(a, x.rank) for a in node.ints(1, "axes")})
    keeps = bool(node.options("ReducerOptions").KeepDims())
    if not axes:
        return x
    layout = node.layout(x)
    at, taken = [layout.axis(a) for a in axes], layout.take(x)
    if is_quantised(x) and name in ("MEAN", "SUM"):
        y = _total(node, taken, at, name == "MEAN")
    elif is_quantised(x) and name == "REDUCE_PROD":
        raise node.failure("MSC0704", f"msc has it for floats and integers, not for quantised {x.dtype}")
    else:
        check_one_scale(node, x)
        y = _plain(node, name, taken, at)
    whole = layout.give(y)
    return whole if keeps else node.reshape(whole, [n for a, n in enumerate(whole.shape) if a not in axes])


def _plain(node: TfliteNode, name: str, x: TfliteValue, axes: list[int]) -> TfliteValue:
    if name == "MEAN" and x.dtype != "f32":
        count = math.prod(x.shape[a] for a in axes)
        return node(ms.DivOp, node(ms.ReduceSumOp, x, axis=axes, keep_dims=True), count)
    return node(_REDUCTIONS[name], x, axis=axes, keep_dims=True)


def _total(node: TfliteNode, x: TfliteValue, axes: list[int], is_mean: bool) -> TfliteValue:
    """Sums without the zero points; the number of elements of a mean is part of the factor."""
    given, result = codes(node, 0), result_codes(node)
    count = math.prod(x.shape[a] for a in axes)
    total = node(ms.ReduceSumOp, node.cast(x, "i32"), axis=axes, keep_dims=True)
    total = node(ms.SubOp, total, given.zero * count) if given.zero else total
    multiplier, shift = fixed_point.factor(float(given.scale) / float(result.scale))
    if is_mean and count > 0:
        left = min(count.bit_length() - 1, 32, 31 + shift)
        multiplier, shift = (multiplier << left) // count, shift - left
    return by_factors(node, total, [(multiplier, shift)], zero=result.zero, dtype=result.dtype)
