"""Which values an integer takes: from constants, counters of loops, what memory holds, and what is computed of them.

Integers wrap as the machine's do: where the exact result of an operation may not fit its type, the range is that of the
whole type. So a range is always right, and what is inside an array by its range is inside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from xdsl.dialects import arith, func, scf
from xdsl.dialects import math as maths
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue
from xdsl.ir.affine import AffineExpr

from msc.analysis.integer_bounds import EXACT, Range, absolute, fits, type_range, union
from msc.dialects import loop
from msc.dialects.open_sizes import argument_sizes
from msc.poly.intervals import interval, magnitude

INDEX_LIMIT = (1 << 63) - 1
"""The largest index."""


def index_range(value: SSAValue) -> Range | None:
    """The values that a scalar takes; None if it is no integer."""
    return ValueRanges().of(value)


def runs(loop: scf.ForOp) -> bool:
    """Whether a loop is known to run once at least."""
    lower, upper = index_range(loop.lb), index_range(loop.ub)
    return lower is not None and upper is not None and lower[1] < upper[0]


def wraps(op: Operation) -> bool:
    """Whether the exact result of an addition, subtraction or product may not fit its type."""
    ranges = ValueRanges()
    a, b = (ranges.of(value) for value in op.operands)
    exact = None if a is None or b is None else EXACT[op.name](a, b)
    return exact is None or not fits(exact, op.results[0].type)


class ValueRanges:
    """The ranges of integers, each found once."""

    def __init__(self) -> None:
        self._found: dict[SSAValue, Range | None] = {}

    def of(self, value: SSAValue) -> Range | None:
        """The values that a scalar takes; None if it is no integer."""
        pending, entered = [value], set[SSAValue]()
        while pending:
            last = pending[-1]
            if last in self._found:
                pending.pop()
            elif last in entered:
                self._found[last] = self._range(last)
            else:
                entered.add(last)
                missing = [v for v in _sources(last) if v not in self._found]
                # A value that is computed of itself breaks the rule of dominance, which others report.
                self._found |= {v: type_range(v.type) for v in missing if v in entered}
                pending += [v for v in missing if v not in entered]
        return self._found[value]

    def _range(self, value: SSAValue) -> Range | None:
        whole = type_range(value.type)
        if whole is None:
            return None
        exact = self._counter(value) if isinstance(value, BlockArgument) else self._result(value)
        return exact if exact is not None and fits(exact, value.type) else whole

    def _result(self, value: SSAValue) -> Range | None:
        """The exact range of an operation's result; None where it is not known."""
        match value.owner:
            case arith.ConstantOp(value=IntegerAttr() as constant):
                return constant.value.data, constant.value.data
            case loop.ApplyOp() as op:
                return self._affine(op.map.data.results, op.values, max)
            case arith.SelectOp(lhs=lhs, rhs=rhs):
                return union([self._found[lhs], self._found[rhs]])
            case scf.IfOp() as op if isinstance(value, OpResult):
                return union([self._found[v] for v in _yielded(op, value.index)])
            case Operation() as op if op.name in EXACT:
                a, b = (self._found[v] for v in op.operands)
                return None if a is None or b is None else EXACT[op.name](a, b)
            case maths.AbsIOp(operand=source) if (range_ := self._found[source]) is not None:
                return absolute(range_)
            case Operation() as op if op.name in _CASTS:
                return _cast(op, self._found[op.operands[0]])
            case _:
                return None

    def _affine(
        self, exprs: Sequence[AffineExpr], values: Sequence[SSAValue], choice: Callable[..., int]
    ) -> Range | None:
        """The largest or the smallest of some expressions; None where a part of one may leave 64 bits."""
        dims = [self._found[v] for v in values]
        found = [interval(expr, dims) for expr in exprs if magnitude(expr, dims) <= INDEX_LIMIT]
        ranges = [r for r in found if r is not None]
        if not ranges or len(ranges) < len(exprs):
            return None
        return choice(low for low, _ in ranges), choice(high for _, high in ranges)

    def _counter(self, value: BlockArgument) -> Range | None:
        """The values of the counter of a loop in its iterations, or of a size that the call decides."""
        if value.index != 0 and not isinstance(value.owner.parent_op(), func.FuncOp):
            return None
        match value.owner.parent_op():
            case func.FuncOp() as function:
                size = argument_sizes(function.args, function.arg_attrs).get(value)
                return None if size is None else (size.low, size.high)
            case scf.ForOp(lb=lb, ub=ub, step=step):
                return _counted(self._found[lb], self._found[ub], self._found[step])
            case loop.ForOp() as op:
                lower = self._affine(op.lower.data.results, op.values, max)
                upper = self._affine(op.upper.data.results, op.values, min)
                step = op.step.value.data
                return _counted(lower, upper, (step, step))
            case _:
                return None


def _counted(lower: Range | None, upper: Range | None, step: Range | None) -> Range | None:
    """What a counter may be while it is below the end; None where nothing is known, and where no iteration runs."""
    if lower is None or upper is None or step is None or step[0] <= 0:
        return None
    if upper[1] + step[1] - 1 > INDEX_LIMIT or lower[0] >= upper[1]:
        return None
    return lower[0], upper[1] - 1


def _sources(value: SSAValue) -> Iterable[SSAValue]:
    """The integers that the range of a value follows from."""
    match value.owner:
        case scf.IfOp() as op if isinstance(value, OpResult):
            return _yielded(op, value.index)
        case loop.ApplyOp() as op:
            return op.values
        case Operation() as op if op.name.startswith(("arith.", "math.")):
            return op.operands
        case Operation():
            return ()
        case block:
            return _bounds(block.parent_op())


def _bounds(op: Operation | None) -> Iterable[SSAValue]:
    match op:
        case scf.ForOp(lb=lb, ub=ub, step=step):
            return lb, ub, step
        case loop.ForOp():
            return op.values
        case _:
            return ()


def _yielded(op: scf.IfOp, position: int) -> list[SSAValue]:
    """What the branches give for a result."""
    ends = [region.block.last_op for region in op.regions if region.blocks]
    return [end.operands[position] for end in ends if isinstance(end, scf.YieldOp) and position < len(end.operands)]


_CASTS = frozenset({"arith.index_cast", "arith.extsi", "arith.extui", "arith.trunci"})


def _cast(op: Operation, source: Range | None) -> Range | None:
    """The range of a converted integer: `arith.extui` reads one that is negative as unsigned."""
    whole = type_range(op.operands[0].type)
    if source is None or whole is None or op.name != "arith.extui" or source[0] >= 0:
        return source
    return 0, (1 if whole == (-1, 1) else whole[1] - whole[0])
