"""Which values the elements of integer tensors take: from their types, constants, and what is computed of them."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, OpResult, SSAValue

from msc.analysis.integer_bounds import EXACT, Range, fits, type_range, union
from msc.dialects.arrays import dense_array
from msc.dialects.ms.arithmetic import AddOp, MaximumOp, MinimumOp, ModOp, MulOp, SubOp
from msc.dialects.ms.base import MsOp, ViewOp
from msc.dialects.ms.comparison import LessOp
from msc.dialects.ms.elementwise import CastOp, IdentityOp, SelectOp
from msc.dialects.ms.indexing import GatheringOp, IotaOp
from msc.dialects.ms.movement import BroadcastToOp, ConcatOp, SliceOp, StackOp, TransposeOp
from msc.dialects.ms.ordering import ArgsortOp
from msc.dialects.ms.reductions import ArgExtremeOp
from msc.dialects.ms.slices import ExtractSliceOp
from msc.dialects.ms.structure import ConstantOp, GetParameterOp, ParameterOp, YieldOp
from msc.ir.typed import tensor_type

_ARITHMETIC: Mapping[type[MsOp], str] = {
    AddOp: "arith.addi",
    SubOp: "arith.subi",
    MulOp: "arith.muli",
    MinimumOp: "arith.minsi",
    MaximumOp: "arith.maxsi",
}


class TensorRanges:
    """The ranges of the elements of a module's tensors, each found once.

    Integers wrap: where an exact result may not fit its type, the range is that of the type. Of parameters only what
    computes them is looked at, no data; without a module, nothing.
    """

    def __init__(self, module: ModuleOp | None = None) -> None:
        operations = () if module is None else module.ops
        self._parameters = {op.symbol: op for op in operations if isinstance(op, ParameterOp)}
        self._known: dict[SSAValue, Range | None] = {}

    def assume(self, value: SSAValue, range_: Range) -> None:
        """Take a range of a value for granted, for what is asked from now on."""
        self._known[value] = range_

    def of(self, value: SSAValue) -> Range | None:
        """The smallest and the largest element; None for what is no integer."""
        pending = [value]
        while pending:
            last = pending[-1]
            open_ = [] if last in self._known else [each for each in self._sources(last) if each not in self._known]
            if open_:
                pending.extend(open_)
                continue
            if last not in self._known:
                self._known[last] = self._range(last)
            pending.pop()
        return self._known[value]

    def _sources(self, value: SSAValue) -> list[SSAValue]:
        """What the range of a value is found from."""
        op = _operation(value)
        if isinstance(op, GetParameterOp):
            given = self._initialiser(op)
            return [] if given is None else [given]
        return list(op.operands) if isinstance(op, MsOp) and type_range(tensor_type(value).element_type) else []

    def _initialiser(self, op: GetParameterOp) -> SSAValue | None:
        parameter = self._parameters.get(op.symbol)
        if parameter is None or parameter.initialiser is None:
            return None
        last = parameter.initialiser.block.last_op
        return last.values[0] if isinstance(last, YieldOp) else None

    def _range(self, value: SSAValue) -> Range | None:
        whole = type_range(tensor_type(value).element_type)
        found = None if whole is None else self._computed(value)
        return found if found is not None and fits(found, tensor_type(value).element_type) else whole

    def _computed(self, value: SSAValue) -> Range | None:
        op = _operation(value)
        match op:
            case ConstantOp():
                array = dense_array(op.value)
                return (int(array.min()), int(array.max())) if array.size else None
            case IotaOp():
                return 0, max(*op.result_shape(), 1) - 1
            case GetParameterOp():
                given = self._initialiser(op)
                return None if given is None else self._known[given]
            case CastOp() | ViewOp() | TransposeOp() | BroadcastToOp() | IdentityOp() | SliceOp() | ExtractSliceOp():
                return self._known[op.operands[0]]
            case GatheringOp():
                return self._known[op.operands[0]]
            case ConcatOp() | StackOp():
                return union(self._known[operand] for operand in op.operands)
            case ArgExtremeOp() | ArgsortOp():
                return 0, max(op.shape(0), default=1) - 1
            case ModOp():
                return _remainder(self._known[op.operands[1]])
            case SelectOp():
                return self._chosen(op)
            case MsOp() if type(op) in _ARITHMETIC:
                a, b = (self._known[operand] for operand in op.operands)
                return None if a is None or b is None else EXACT[_ARITHMETIC[type(op)]](a, b)
            case _:
                return None

    def _chosen(self, op: SelectOp) -> Range | None:
        """Either; where the condition is that x is negative, one of x + c and x, each for such x."""
        condition, a, b = op.operands
        x, test = self._known[b], _operation(condition)
        if isinstance(test, LessOp) and test.operands[0] is b and self._known[test.operands[1]] == (0, 0) and x:
            added = _operation(a)
            if isinstance(added, AddOp) and added.operands[0] is b:
                c = self._known[added.operands[1]]
                wrapped = None if c is None or x[0] >= 0 else (x[0] + c[0], min(x[1], -1) + c[1])
                return x if x[0] >= 0 else wrapped if x[1] < 0 else union([wrapped, (0, x[1])])
        return union([self._known[a], self._known[b]])


def _remainder(divisor: Range | None) -> Range | None:
    """Of a floored division by a positive number."""
    return (0, divisor[1] - 1) if divisor is not None and divisor[0] > 0 else None


def _operation(value: SSAValue) -> Operation | None:
    return value.op if isinstance(value, OpResult) else None
