"""Between what the elements of a computed value lie, in a box of their places: masks that are computed are structure.

Read are constants of the text, places (`ms.iota`, triangles), comparisons of them and what chooses by these, through
derived parameters; of inputs and stored parameters nothing is known. NaN is left out of account.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf, isfinite, isnan

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, OpResult, SSAValue

from msc.dialects.element_types import is_float
from msc.dialects.ms import arithmetic, comparison
from msc.dialects.ms.base import MsOp
from msc.dialects.ms.elementwise import CastOp, ElementwiseOp, SelectOp
from msc.dialects.ms.indexing import IotaOp, TrilOp, TriuOp
from msc.dialects.ms.movement import BroadcastToOp, TransposeOp
from msc.dialects.ms.shapes import Shape, shape_of
from msc.dialects.ms.structure import ConstantOp, GetParameterOp, YieldOp
from msc.dialects.ms.unary import LogicalNotOp, NegOp
from msc.dialects.ms.views import ReshapeOp
from msc.graph_kernel.parameters import parameters
from msc.interp.arrays import dense_array
from msc.ir.typed import tensor_type
from msc.poly.compute import integer_range

Interval = tuple[float, float]
"""The least and the greatest element; booleans are 0 and 1."""
Box = tuple[tuple[int, int], ...]
"""Along each axis the first and the last place."""

UNKNOWN: Interval = (-inf, inf)
NEVER: Interval = (-inf, -inf)
"""Of scores: what softmax gives no weight."""
_FALSE, _TRUE, _EITHER = (0.0, 0.0), (1.0, 1.0), (0.0, 1.0)


class ValueIntervals:
    """Intervals of the values of a module."""

    def __init__(self, module: ModuleOp) -> None:
        self._parameters = {op.symbol: op for op in parameters(module)}

    def of(self, value: SSAValue, box: Box) -> Interval:
        """Of a value, in a box of its places."""
        op = value.op if isinstance(value, OpResult) else None
        match op:
            case GetParameterOp():
                made = self._parameters[op.symbol].initialiser if op.symbol in self._parameters else None
                last = None if made is None else made.block.last_op
                return self.of(last.operands[0], box) if isinstance(last, YieldOp) else UNKNOWN
            case ConstantOp():
                part = dense_array(op.value)[tuple(slice(a, b + 1) for a, b in box)].astype(np.float64)
                return (float(part.min()), float(part.max())) if part.size and not np.isnan(part).any() else UNKNOWN
            case IotaOp():
                first, last = box[op.int_("axis") % len(box)]
                return float(first), float(last)
            case ReshapeOp() | BroadcastToOp() | TransposeOp():
                return self.of(op.operands[0], _source_box(op, box))
            case TrilOp() | TriuOp() | ElementwiseOp() | SelectOp():
                return applied(op, [self.of(v, operand_box(v, box)) for v in op.operands], box)
            case _:
                return UNKNOWN


def operand_box(value: SSAValue, box: Box) -> Box:
    """The places of an operand that broadcasts to the places of a box."""
    return _broadcast_box(shape_of(tensor_type(value)), box)


def _broadcast_box(shape: Shape, box: Box) -> Box:
    inner = box[len(box) - len(shape) :]
    return tuple((0, 0) if size == 1 else places for size, places in zip(shape, inner, strict=True))


def _source_box(op: MsOp, box: Box) -> Box:
    """The places that a movement reads; all of them where axes are joined or split."""
    shape = op.shape(0)
    match op:
        case TransposeOp():
            perm = op.ints("perm")
            return tuple(box[perm.index(axis)] for axis in range(len(shape)))
        case BroadcastToOp():
            return _broadcast_box(shape, box)
        case _:
            result = op.result_shape()
            if [n for n in shape if n != 1] != [n for n in result if n != 1]:
                return tuple((0, n - 1) for n in shape)
            wide = iter([places for places, n in zip(box, result, strict=True) if n != 1])
            return tuple((0, 0) if n == 1 else next(wide) for n in shape)


def applied(op: Operation, given: Sequence[Interval], box: Box) -> Interval:
    """The interval of an operation's result in a box, from those of its operands."""
    match op:
        case SelectOp():
            chosen = [v for v, when in zip(given[1:], (1.0, 0.0), strict=True) if given[0][0] <= when <= given[0][1]]
            return _hull(chosen or given[1:])
        case TrilOp() | TriuOp():
            return _triangle(op, given[0], box)
        case CastOp():
            return _cast(op, given[0])
        case _ if type(op) in _UNARY:
            return _UNARY[type(op)](given[0])
        case MsOp() if type(op) in _BINARY:
            return _rounded(_BINARY[type(op)](given[0], given[1]), op.result_dtype())
        case _:
            return UNKNOWN


def _hull(parts: Sequence[Interval]) -> Interval:
    return min(low for low, _ in parts), max(high for _, high in parts)


def _triangle(op: TrilOp | TriuOp, x: Interval, box: Box) -> Interval:
    rows, columns = box[-2:]
    near, far = columns[0] - rows[1], columns[1] - rows[0]
    sign, distance = (1, op.int_("diagonal")) if isinstance(op, TriuOp) else (-1, -op.int_("diagonal"))
    least, greatest = sorted((sign * near, sign * far))
    if least >= distance:
        return x
    return _FALSE if greatest < distance else _hull([x, _FALSE])


def _rounded(x: Interval, dtype: str) -> Interval:
    """The interval in an element type: integers that do not wrap, floats as far as the narrowest ones round."""
    if dtype == "i1":
        return x
    if is_float(dtype):
        low, high = (abs(bound) / 128 if isfinite(bound) else 0.0 for bound in x)
        return x[0] - low, x[1] + high
    least, greatest = integer_range(dtype)
    return x if least <= x[0] and x[1] <= greatest else UNKNOWN


def _cast(op: CastOp, x: Interval) -> Interval:
    """As the new type has it; floats are not made integers."""
    target = op.result_dtype()
    if target == "i1":
        return _FALSE if x == _FALSE else _TRUE if x[0] > 0 or x[1] < 0 else _EITHER
    if is_float(target):
        return x if x in (NEVER, _FALSE, _TRUE) else _rounded(x, target)
    return UNKNOWN if is_float(op.dtype(0)) else _rounded(x, target)


def _add(a: Interval, b: Interval) -> Interval:
    """What adds up to minus infinity whatever it is added to stays that."""
    if NEVER in (a, b):
        return NEVER
    low, high = a[0] + b[0], a[1] + b[1]
    return -inf if isnan(low) else low, inf if isnan(high) else high


def _negative(a: Interval) -> Interval:
    return -a[1], -a[0]


def _multiply(a: Interval, b: Interval) -> Interval:
    corners = [x * y for x in a for y in b]
    return UNKNOWN if any(map(isnan, corners)) else (min(corners), max(corners))


def _less(a: Interval, b: Interval) -> Interval:
    return _TRUE if a[1] < b[0] else _FALSE if a[0] >= b[1] else _EITHER


def _not(a: Interval) -> Interval:
    return 1 - min(a[1], 1), 1 - max(a[0], 0)


def _equal(a: Interval, b: Interval) -> Interval:
    if a[1] < b[0] or b[1] < a[0]:
        return _FALSE
    return _TRUE if a == b and a[0] == a[1] else _EITHER


def _both(a: Interval, b: Interval) -> Interval:
    """Of booleans; nothing is known of other bits."""
    (a, b) = (_truth(a), _truth(b))
    return min(a[0], b[0]), min(a[1], b[1])


def _truth(a: Interval) -> Interval:
    return max(a[0], 0.0), min(a[1], 1.0)


_UNARY: Mapping[type[Operation], Callable[[Interval], Interval]] = {
    NegOp: _negative,
    LogicalNotOp: lambda a: _not(_truth(a)),
}
_BINARY: Mapping[type[Operation], Callable[[Interval, Interval], Interval]] = {
    arithmetic.AddOp: _add,
    arithmetic.SubOp: lambda a, b: _add(a, _negative(b)),
    arithmetic.MulOp: _multiply,
    arithmetic.MaximumOp: lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
    arithmetic.MinimumOp: lambda a, b: (min(a[0], b[0]), min(a[1], b[1])),
    comparison.LessOp: _less,
    comparison.GreaterOp: lambda a, b: _less(b, a),
    comparison.LessEqualOp: lambda a, b: _not(_less(b, a)),
    comparison.GreaterEqualOp: lambda a, b: _not(_less(a, b)),
    comparison.EqualOp: _equal,
    comparison.NotEqualOp: lambda a, b: _not(_equal(a, b)),
    comparison.LogicalAndOp: _both,
    comparison.LogicalOrOp: lambda a, b: _not(_both(_not(_truth(a)), _not(_truth(b)))),
}
