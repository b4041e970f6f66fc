"""Which values an index takes: from constants, counters of loops, what memory holds, and what is computed of them."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects import arith, memref, scf, tensor
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import BlockArgument, SSAValue

from msc.dialects.element_types import FAMILIES, dtype_name
from msc.poly.compute import integer_range

Range = tuple[int, int]
"""The smallest and the largest value."""


def index_range(value: SSAValue) -> Range | None:
    """The values that a scalar takes; None if they are not known."""
    if isinstance(value, BlockArgument):
        return _counter_range(value)
    match value.owner:
        case arith.ConstantOp(value=IntegerAttr() as constant):
            return constant.value.data, constant.value.data
        case arith.IndexCastOp(input=source):
            return index_range(source)
        case arith.AddiOp(lhs=lhs, rhs=rhs):
            return _combined(index_range(lhs), index_range(rhs), 1)
        case arith.SubiOp(lhs=lhs, rhs=rhs):
            return _combined(index_range(lhs), index_range(rhs), -1)
        case arith.MinSIOp(lhs=lhs, rhs=rhs):
            return _extremum(index_range(lhs), index_range(rhs), min)
        case arith.MaxSIOp(lhs=lhs, rhs=rhs):
            return _extremum(index_range(lhs), index_range(rhs), max)
        case memref.LoadOp() | tensor.ExtractOp():
            dtype = dtype_name(value.type)
            return integer_range(dtype) if dtype in FAMILIES["a signed integer"] else None
        case arith.MuliOp(lhs=lhs, rhs=rhs):
            return _scaled(index_range(lhs), index_range(rhs), lambda a, b: a * b)
        case arith.FloorDivSIOp(lhs=lhs, rhs=rhs):
            return _scaled(index_range(lhs), index_range(rhs), lambda a, b: a // b)
        case _:
            return None


def runs(loop: scf.ForOp) -> bool:
    """Whether a loop is known to run once at least."""
    lower, upper = index_range(loop.lb), index_range(loop.ub)
    return lower is not None and upper is not None and lower[1] < upper[0]


def _counter_range(value: BlockArgument) -> Range | None:
    """The values of the counter of a loop that runs."""
    loop = value.owner.parent_op()
    if not isinstance(loop, scf.ForOp) or value.index != 0:
        return None
    lower, upper, step = index_range(loop.lb), index_range(loop.ub), index_range(loop.step)
    if lower is None or upper is None or step is None or step[0] <= 0 or lower[0] >= upper[1]:
        return None
    return lower[0], upper[1] - 1


def _combined(a: Range | None, b: Range | None, sign: int) -> Range | None:
    if a is None or b is None:
        return None
    ends = (b[0], b[1]) if sign > 0 else (-b[1], -b[0])
    return a[0] + ends[0], a[1] + ends[1]


def _extremum(a: Range | None, b: Range | None, operation: Callable[[int, int], int]) -> Range | None:
    return None if a is None or b is None else (operation(a[0], b[0]), operation(a[1], b[1]))


def _scaled(a: Range | None, b: Range | None, operation: Callable[[int, int], int]) -> Range | None:
    """By a positive constant."""
    if a is None or b is None or b[0] != b[1] or b[0] <= 0:
        return None
    return operation(a[0], b[0]), operation(a[1], b[0])
