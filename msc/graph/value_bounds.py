"""Bounds of a graph's values as constant expressions: what parameters and constants say of values that inputs change.

Monotone operations are applied to bounds as they stand, so that bounds are rounded as the values are. No data is read:
like all work on weights, the expressions are evaluated when the artifact is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from xdsl.ir import OpResult, SSAValue

from msc.analysis.constancy import Constancy
from msc.dialects.element_types import is_float
from msc.dialects.ms.arithmetic import AddOp, MaximumOp, MinimumOp, SubOp
from msc.dialects.ms.base import MsOp, ViewOp
from msc.dialects.ms.comparison import EqualOp, LogicalAndOp, LogicalOrOp
from msc.dialects.ms.elementwise import CastOp, SelectOp
from msc.dialects.ms.movement import BroadcastToOp, TransposeOp
from msc.dialects.ms.unary import LogicalNotOp, NegOp
from msc.graph.emitter import Emitter


@dataclass(frozen=True)
class Bounds:
    """The least and the greatest that each element may be: values that broadcast to its shape."""

    low: SSAValue
    high: SSAValue


class ValueBounds:
    """Bounds of values, as operations that `emit` appends. NaN is left out of account."""

    def __init__(self, emit: Emitter) -> None:
        self._emit, self._constancy = emit, Constancy()

    def of(self, value: SSAValue) -> Bounds:
        """Of any value: itself if it is constant."""
        if self._constancy.of(value):
            return Bounds(value, value)
        op = value.op if isinstance(value, OpResult) else None
        if not isinstance(op, MsOp):
            return self.unknown(value)
        return self.applied(op, [self.of(operand) for operand in op.operands])

    def within(self, value: SSAValue, low: float, high: float) -> Bounds:
        """The same numbers for all elements."""
        dtype = self._emit.dtype(value)
        return Bounds(self._emit.scalar(low, dtype), self._emit.scalar(high, dtype))

    def unknown(self, value: SSAValue) -> Bounds:
        """What holds of all values of a type."""
        return self.within(value, 0, 1) if self._emit.dtype(value) == "i1" else self.within(value, -inf, inf)

    def applied(self, op: MsOp, given: Sequence[Bounds]) -> Bounds:
        """Of an operation's result, from those of its operands."""
        dtype = op.result_dtype()
        match op:
            case _ if not is_float(dtype) and dtype != "i1":
                return self.unknown(op.results[0])
            case AddOp():
                return self._sum(*given)
            case SubOp():
                return self._sum(given[0], self._negative(NegOp, given[1]))
            case SelectOp():
                return self._chosen(*given)
            case NegOp() | LogicalNotOp():
                return self._negative(type(op), given[0])
            case CastOp() if dtype == "i1" and op.dtype(0) != "i1":
                return self.unknown(op.results[0])
            case ViewOp() | TransposeOp():
                return Bounds(self._moved(op, given[0].low), self._moved(op, given[0].high))
            case MinimumOp() | MaximumOp() | LogicalAndOp() | LogicalOrOp() | CastOp() | BroadcastToOp():
                return Bounds(self._again(op, *(b.low for b in given)), self._again(op, *(b.high for b in given)))
            case _:
                return self.unknown(op.results[0])

    def _moved(self, op: MsOp, x: SSAValue) -> SSAValue:
        """A view or a transpose of a bound, which is a number or made as large as what it bounds."""
        shape = self._emit.shape(x)
        whole = x if shape == op.shape(0) else self._emit(BroadcastToOp, x, shape=list(op.shape(0)))
        return self._again(op, whole) if shape else x

    def _again(self, op: MsOp, *operands: SSAValue) -> SSAValue:
        """An operation on bounds, whose shapes may be smaller than those of the values."""
        made = type(op).create(operands=operands, result_types=op.result_types, properties=op.properties)
        self._emit.ops.append(made)
        made.set_result_types(made.infer())
        return made.results[0]

    def _sum(self, a: Bounds, b: Bounds) -> Bounds:
        return Bounds(self._added(a.low, b.low), self._added(a.high, b.high))

    def _added(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """What minus infinity is added to is that, whatever it was."""
        emit = self._emit
        is_least = emit(LogicalOrOp, emit(EqualOp, a, -inf), emit(EqualOp, b, -inf))
        return emit(SelectOp, is_least, -inf, emit(AddOp, a, b))

    def _negative(self, operation: type[MsOp], x: Bounds) -> Bounds:
        return Bounds(self._emit(operation, x.high), self._emit(operation, x.low))

    def _chosen(self, condition: Bounds, a: Bounds, b: Bounds) -> Bounds:
        """`a` where the condition surely holds, `b` where it surely does not, either elsewhere."""

        def choose(extremum: type[MsOp], x: SSAValue, y: SSAValue) -> SSAValue:
            either = y if condition.low is condition.high else emit(extremum, x, y)
            return emit(SelectOp, condition.low, x, emit(SelectOp, condition.high, either, y))

        emit = self._emit
        return Bounds(choose(MinimumOp, a.low, b.low), choose(MaximumOp, a.high, b.high))
