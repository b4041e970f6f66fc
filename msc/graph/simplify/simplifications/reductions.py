"""Reductions of single elements."""

from __future__ import annotations

from xdsl.ir import SSAValue

from msc.dialects import ms
from msc.dialects.element_types import is_float
from msc.dialects.ms.reductions import ReductionOp, reduced_axes
from msc.dialects.ms.shapes import known
from msc.graph.emitter import Emitter
from msc.graph.simplify.simplifications.registry import simplification


@simplification(ms.ReduceMaxOp, ms.ReduceMinOp, ms.ReduceProdOp, ms.ReduceSumOp, ms.ReduceAllOp, ms.ReduceAnyOp)
def _of_single_elements(op: ReductionOp, emit: Emitter) -> SSAValue | None:
    """Axes of size 1: combining one element with the neutral one is that element; a float sum starts at +0, and
    +0 + -0 is +0, so it is left.
    """
    shape = op.shape(0)
    if not known(shape) or any(shape[axis] != 1 for axis in reduced_axes(op)):
        return None
    if isinstance(op, ms.ReduceSumOp) and is_float(op.dtype(0)):
        return None
    return emit.reshape(op.x, op.result_shape())
