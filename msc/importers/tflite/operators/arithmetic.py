"""Arithmetic on elements, comparisons and logic; operands broadcast."""

from __future__ import annotations

from msc.dialects import ms
from msc.dialects.ms.base import MsOp
from msc.importers.tflite.integers import (
    F32,
    Codes,
    centred,
    codes,
    has_codes,
    is_quantised,
    limited,
    rescaled,
    result_codes,
)
from msc.importers.tflite.node import TfliteNode, TfliteValue
from msc.importers.tflite.operators.activations import activated, limits_only, unary
from msc.importers.tflite.registry import importer

_BINARY: dict[str, tuple[type[MsOp], str]] = {
    "ADD": (ms.AddOp, "AddOptions"),
    "SUB": (ms.SubOp, "SubOptions"),
    "MUL": (ms.MulOp, "MulOptions"),
    "DIV": (ms.DivOp, "DivOptions"),
}


@importer(*_BINARY)
def _arithmetic(node: TfliteNode) -> TfliteValue:
    operation, kind = _BINARY[node.record.name]
    activation = int(node.options(kind).FusedActivationFunction())
    layout = node.layout(node[0], node[1])
    a, b = layout.take(node[0]), layout.take(node[1])
    if not is_quantised(node[0]):
        return layout.give(activated(node, node(operation, a, b), activation))
    limits = result_codes(node).limits(limits_only(node, activation))
    by_name = {"MUL": _product, "DIV": _quotient}.get(node.record.name, _sum)
    return layout.give(limited(node, by_name(node, a, b), *limits))


def _sum(node: TfliteNode, a: TfliteValue, b: TfliteValue) -> TfliteValue:
    """Both on the scale of twice the larger one, with bits to spare; each step rounds."""
    left, right, result = codes(node, 0), codes(node, 1), result_codes(node)
    bits = 15 if result.dtype == "i16" else 20
    if node.record.name == "SUB":
        # Its factors are computed in single precision.
        twice = F32(2) * max(left.scale, right.scale)
        reals = float(left.scale / twice), float(right.scale / twice)
        last = float(twice / F32(F32(1 << bits) * result.scale))
    else:
        wide = 2 * float(max(left.scale, right.scale))
        reals = float(left.scale) / wide, float(right.scale) / wide
        last = wide / ((1 << bits) * float(result.scale))

    def scaled(x: TfliteValue, given: Codes, real: float) -> TfliteValue:
        centre = centred(node, x, given.zero)
        if real == 0.5:  # exact
            return node(ms.ShiftLeftOp, centre, bits - 1)
        return rescaled(node, node(ms.ShiftLeftOp, centre, bits), real, most=most)

    most = 256 << bits if result.dtype in ("i8", "ui8") else 1 << 31
    first, second = (scaled(*each) for each in zip((a, b), (left, right), reals, strict=True))
    total = node(ms.SubOp if node.record.name == "SUB" else ms.AddOp, first, second)
    return rescaled(node, total, last, zero=result.zero, dtype=result.dtype, most=most)


def _product(node: TfliteNode, a: TfliteValue, b: TfliteValue) -> TfliteValue:
    left, right, result = codes(node, 0), codes(node, 1), result_codes(node)
    product = node(ms.MulOp, centred(node, a, left.zero), centred(node, b, right.zero))
    real = float(left.scale) * float(right.scale) / float(result.scale)
    most = 1 << 16 if result.dtype in ("i8", "ui8") else 1 << 31
    return rescaled(node, product, real, zero=result.zero, dtype=result.dtype, most=most)


def _quotient(node: TfliteNode, a: TfliteValue, b: TfliteValue) -> TfliteValue:
    raise node.failure("MSC0704", "msc has it for floats and integers, not for quantised numbers")


@importer("ADD_N")
def _sum_of_many(node: TfliteNode) -> TfliteValue:
    first, *rest = node.tensors()
    if is_quantised(first):
        raise node.failure("MSC0704", "msc has it for floats, not for quantised numbers")
    layout = node.layout(*node.tensors())
    total = layout.take(first)
    for each in rest:
        total = node(ms.AddOp, total, layout.take(each))
    return layout.give(total)


@importer("MAXIMUM", "MINIMUM")
def _extreme(node: TfliteNode) -> TfliteValue:
    """Of quantised numbers of one scale, as the kernels have it: of the integers."""
    layout = node.layout(node[0], node[1])
    operation = ms.MaximumOp if node.record.name == "MAXIMUM" else ms.MinimumOp
    check_one_scale(node, *node.tensors())
    return layout.give(node(operation, layout.take(node[0]), layout.take(node[1])))


def check_one_scale(node: TfliteNode, *values: TfliteValue) -> None:
    """Raise MSC0730 unless quantised inputs have the scale and the zero point of the result."""
    for index, value in enumerate(values):
        if has_codes(value):
            given, result = codes(node, index), result_codes(node)
            if given.scale != result.scale or given.zero != result.zero:
                raise node.failure("MSC0730", f"input {index} has another scale or zero point than its output")


_FLOATS: dict[str, type[MsOp]] = {
    "POW": ms.PowOp,
    "ATAN2": ms.Atan2Op,
    "FLOOR_DIV": ms.FloorDivOp,
    "FLOOR_MOD": ms.ModOp,
    "LOGICAL_AND": ms.LogicalAndOp,
    "LOGICAL_OR": ms.LogicalOrOp,
    "BITWISE_XOR": ms.BitwiseXorOp,
    "RIGHT_SHIFT": ms.ShiftRightOp,
}


@importer(*_FLOATS)
def _binary(node: TfliteNode) -> TfliteValue:
    _not_quantised(node)
    layout = node.layout(node[0], node[1])
    return layout.give(node(_FLOATS[node.record.name], layout.take(node[0]), layout.take(node[1])))


@importer("SQUARED_DIFFERENCE")
def _squared_difference(node: TfliteNode) -> TfliteValue:
    layout = node.layout(node[0], node[1])
    a, b = layout.take(node[0]), layout.take(node[1])
    if not is_quantised(node[0]):
        return layout.give(node(ms.SquareOp, node(ms.SubOp, a, b)))
    left, right, result = codes(node, 0), codes(node, 1), result_codes(node)
    wide = 2 * float(max(left.scale, right.scale))
    bits = 7
    first, second = (
        rescaled(node, node(ms.ShiftLeftOp, centred(node, x, c.zero), bits), float(c.scale) / wide)
        for x, c in ((a, left), (b, right))
    )
    difference = node(ms.SubOp, first, second)
    last = wide * wide / ((1 << (2 * bits)) * float(result.scale))
    square = node(ms.MulOp, difference, difference)
    return layout.give(rescaled(node, square, last, zero=result.zero, dtype=result.dtype))


_COMPARISONS: dict[str, type[MsOp]] = {
    "EQUAL": ms.EqualOp,
    "NOT_EQUAL": ms.NotEqualOp,
    "GREATER": ms.GreaterOp,
    "GREATER_EQUAL": ms.GreaterEqualOp,
    "LESS": ms.LessOp,
    "LESS_EQUAL": ms.LessEqualOp,
}


@importer(*_COMPARISONS)
def _comparison(node: TfliteNode) -> TfliteValue:
    layout = node.layout(node[0], node[1])
    a, b = layout.take(node[0]), layout.take(node[1])
    if has_codes(node[0]):
        a, b = (
            rescaled(node, node(ms.ShiftLeftOp, centred(node, x, c.zero), 8), float(c.scale))
            for x, c in ((a, codes(node, 0)), (b, codes(node, 1)))
        )
    return layout.give(node(_COMPARISONS[node.record.name], a, b))


def _not_quantised(node: TfliteNode) -> None:
    if is_quantised(node[0]):
        raise node.failure("MSC0704", f"msc has it for floats and integers, not for quantised {node[0].dtype}")


_UNARY: dict[str, type[MsOp]] = {
    "FLOOR": ms.FloorOp,
    "CEIL": ms.CeilOp,
    "ROUND": ms.RoundOp,
    "SIGN": ms.SignOp,
    "LOGICAL_NOT": ms.LogicalNotOp,
}


@importer(*_UNARY)
def _unary(node: TfliteNode) -> TfliteValue:
    _not_quantised(node)
    return unary(node, _UNARY[node.record.name])


@importer("ZEROS_LIKE")
def _zeros(node: TfliteNode) -> TfliteValue:
    _not_quantised(node)
    zero = node.scalar(0, node[0].dtype)
    return node(ms.BroadcastToOp, zero, shape=list(node[0].shape))


@importer("SELECT", "SELECT_V2")
def _select(node: TfliteNode) -> TfliteValue:
    condition, a, b = node[0], node[1], node[2]
    if node.record.name == "SELECT" and condition.rank == 1 and a.rank > 1:
        condition = node.reshape(condition, (*condition.shape, *(1 for _ in range(a.rank - 1))))
    layout = node.layout(condition, a, b)
    return layout.give(node(ms.SelectOp, *(layout.take(v) for v in (condition, a, b))))
