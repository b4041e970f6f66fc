"""How many arithmetic operations a computation takes, counted on its compute definition.

A scalar operator counts as one, whatever it costs; a product that is added counts as two, as everywhere in the field.
Comparisons and selections count, copies and conversions do not.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.scf import ForOp
from xdsl.ir import Operation

from msc.analysis.repetition import trip_count
from msc.dialects.ms.base import BasicOp
from msc.poly.compute import Statement
from msc.poly.scalar import Apply, Cast, Read, Scalar


def flops(op: Operation) -> int:
    """The arithmetic operations of an operation; for a kernel or a function, of all basic operations in its regions.

    Operations that state no computation count as 0; shapes must be static. What a loop of known bounds repeats counts
    as often as it runs, what any other loop repeats once.
    """
    if isinstance(op, BasicOp):
        return sum(map(_statement_flops, op.compute())) if op.is_basic else 0
    times = trip_count(op) if isinstance(op, ForOp) else None
    return (1 if times is None else times) * sum(_in_regions(op))


def _in_regions(op: Operation) -> Iterator[int]:
    return (flops(inner) for region in op.regions for block in region.blocks for inner in block.ops)


def _statement_flops(statement: Statement) -> int:
    per_point = _operators(statement.body) + (statement.combine is not None)
    return statement.points * per_point


def _operators(scalar: Scalar) -> int:
    match scalar:
        case Apply():
            return 1 + sum(map(_operators, scalar.args))
        case Cast():
            return _operators(scalar.arg)
        case Read():
            return sum(_operators(index) for _, index in scalar.indirect)
        case _:
            return 0
