"""Element-wise arithmetic, comparisons and bits, with NumPy broadcasting."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np

from msc.dialects import ms
from msc.dialects.element_types import is_float
from msc.dialects.ms.base import MsOp
from msc.importers.onnx.node import Node
from msc.importers.onnx.registry import importer
from msc.importers.onnx.values import OnnxValue
from msc.poly.scalar import OPERATORS


def _unary(operation: type[MsOp], node: Node) -> OnnxValue:
    return node(operation, node[0])


def _binary(operation: type[MsOp], node: Node) -> OnnxValue:
    return node(operation, node[0], _aligned(node))


def _aligned(node: Node) -> OnnxValue:
    """The second operand; before opset 7 an `axis` said which axis of the first its first one meets."""
    b = node[1]
    if node.opset >= 7 or not node.given("axis") or not node.flag("broadcast"):
        return b
    tail = node[0].rank - node.axis(node.int_("axis", 0), node[0].rank) - b.rank
    return node.reshape(b, (*node.shape_of(b), *(1 for _ in range(tail))))


for _name, _operation in {"Reciprocal": ms.ReciprocalOp, "Relu": ms.ReluOp}.items():
    importer(_name)(partial(_unary, _operation))
_OTHER_OPERANDS = ("IsInf", "Max", "Min", "Pow", "Where")
"""What ONNX defines on other operands than `ms`, or with attributes."""
_CLASSES = {operation.name: operation for operation in ms.OPERATIONS if issubclass(operation, MsOp)}
for _operator in OPERATORS.values():
    for _tensor, _name in _operator.tensors.items():
        if _name and _name not in _OTHER_OPERANDS:
            importer(_name)(partial(_unary if _operator.arity == 1 else _binary, _CLASSES[f"ms.{_tensor}"]))


def _variadic(operation: type[MsOp], node: Node) -> OnnxValue:
    return folded(node, operation, node.tensors())


def folded(node: Node, operation: type[MsOp], values: Sequence[OnnxValue]) -> OnnxValue:
    """Values joined by a binary operation, from the left."""
    result = values[0]
    for value in values[1:]:
        result = node(operation, result, value)
    return result


for _name, _operation in {"Max": ms.MaximumOp, "Min": ms.MinimumOp, "Sum": ms.AddOp}.items():
    importer(_name)(partial(_variadic, _operation))


@importer("Mean")
def _mean(node: Node) -> OnnxValue:
    values = node.tensors()
    return node(ms.DivOp, folded(node, ms.AddOp, values), float(len(values)))


@importer("Mod")
def _mod(node: Node) -> OnnxValue:
    return node(ms.RemOp if node.flag("fmod") else ms.ModOp, node[0], node[1])


@importer("Pow")
def _pow(node: Node) -> OnnxValue:
    """Base and exponent may differ in type; the result has the base's."""
    base, exponent = node[0], node[1]
    if base.dtype == exponent.dtype:
        return _power(node, base, exponent)
    wide = exponent.dtype if is_float(exponent.dtype) and not is_float(base.dtype) else base.dtype
    return node.cast(_power(node, node.cast(base, wide), node.cast(exponent, wide)), base.dtype)


def _power(node: Node, base: OnnxValue, exponent: OnnxValue) -> OnnxValue:
    """Small whole powers that are known are products; x to the 0.5 stays a power, since -inf to it is inf."""
    if exponent.array is not None and exponent.array.size == 1 and exponent.rank <= base.rank:
        power = float(exponent.array.reshape(-1)[0])
        if power == 2.0:
            return node(ms.SquareOp, base)
        if power == 3.0:
            return node(ms.MulOp, node(ms.SquareOp, base), base)
    return node(ms.PowOp, base, exponent)


@importer("BitShift")
def _bit_shift(node: Node) -> OnnxValue:
    """By the width or more, everything is shifted out; to the right, the sign of a signed number is left."""
    x, amount = node[0], node[1]
    left = node.choice("direction", "", ("LEFT", "RIGHT")) == "LEFT"
    bits = int("".join(filter(str.isdigit, x.dtype)))
    shifted = node(ms.ShiftLeftOp if left else ms.ShiftRightOp, x, node(ms.MinimumOp, amount, bits - 1))
    if not left and x.dtype.startswith("i"):
        return shifted
    return node(ms.SelectOp, node(ms.LessOp, amount, bits), shifted, node.scalar(0, x.dtype))


@importer("IsInf")
def _is_inf(node: Node) -> OnnxValue:
    x, positive, negative = node[0], node.flag("detect_positive", True), node.flag("detect_negative", True)
    if positive and negative:
        return node(ms.IsInfOp, x)
    if not positive and not negative:
        return node(ms.LogicalAndOp, node(ms.IsInfOp, x), node.scalar(False, "i1"))
    return node(ms.EqualOp, x, math.inf if positive else -math.inf)


@importer("Where")
def _where(node: Node) -> OnnxValue:
    return node(ms.SelectOp, node[0], node[1], node[2])


@importer("Clip")
def _clip_attributes(node: Node) -> OnnxValue:
    low, high = node.real("min", -math.inf), node.real("max", math.inf)
    return node(ms.ClipOp, node[0], min=None if low == -math.inf else low, max=None if high == math.inf else high)


@importer("Clip", since=11)
def _clip(node: Node) -> OnnxValue:
    x, low, high = node[0], node.get(1), node.get(2)
    bounds = [_exact(v) for v in (low, high) if v is not None]
    if bounds and None not in bounds:
        return node(ms.ClipOp, x, min=_exact(low), max=_exact(high))
    x = x if low is None else node(ms.MaximumOp, x, low)
    return x if high is None else node(ms.MinimumOp, x, high)


def _exact(value: OnnxValue | None) -> float | None:
    """A known bound as a property can hold it: finite, and exact in double."""
    if value is None or value.array is None or value.array.size != 1:
        return None
    number = value.array.reshape(-1)[0]
    real = float(number)
    return real if np.isfinite(real) and abs(real) < 2**53 else None


@importer("CumSum")
def _cumsum(node: Node) -> OnnxValue:
    axis = node.known_int(1, "axis")
    return node(ms.CumsumOp, node[0], axis=axis, exclusive=node.flag("exclusive"), reverse=node.flag("reverse"))


@importer("CumProd")
def _cumprod(node: Node) -> OnnxValue:
    """As products of ever longer distance: log2 n steps of a shifted copy (Hillis and Steele, 1986)."""
    x, axis = node[0], node.axis(node.known_int(1, "axis"), node[0].rank)
    reverse, size = node.flag("reverse"), node.size_of(node[0], axis)
    if node.flag("exclusive") and size > 0:
        x = shifted(node, x, axis, 1, reverse, 1.0)
    step = 1
    while step < size:
        x = node(ms.MulOp, x, shifted(node, x, axis, step, reverse, 1.0))
        step *= 2
    return x


def shifted(node: Node, x: OnnxValue, axis: int, by: int, back: bool, fill: float) -> OnnxValue:
    """The elements moved `by` places along `axis` towards the end (the front if `back`); `fill` comes in."""
    shape = node.shape_of(x)
    begin, end = [0] * x.rank, list(shape)
    pad = [0] * (2 * x.rank)
    if back:
        begin[axis], pad[x.rank + axis] = by, by
    else:
        end[axis], pad[axis] = shape[axis] - by, by
    return node(ms.PadOp, node(ms.SliceOp, x, begin=begin, end=end), pad=pad, value=fill)
