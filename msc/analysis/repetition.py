"""How often loops of the graph run what stands in them."""

from __future__ import annotations

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Operation, SSAValue


def trip_count(loop: scf.ForOp) -> int | None:
    """How many iterations a loop has; None if a bound is computed."""
    lower, upper, step = (_constant(v) for v in (loop.lb, loop.ub, loop.step))
    if lower is None or upper is None or step is None or step <= 0:
        return None
    return max(0, -(-(upper - lower) // step))


def times_run(op: Operation) -> int | None:
    """How often one call of the model runs an operation, every branch taken; None if that is computed."""
    times, parent = 1, op.parent_op()
    while parent is not None:
        count = trip_count(parent) if isinstance(parent, scf.ForOp) else None if isinstance(parent, scf.WhileOp) else 1
        if count is None:
            return None
        times, parent = times * count, parent.parent_op()
    return times


def _constant(value: SSAValue) -> int | None:
    owner = value.owner
    return (
        owner.value.value.data if isinstance(owner, arith.ConstantOp) and isinstance(owner.value, IntegerAttr) else None
    )
