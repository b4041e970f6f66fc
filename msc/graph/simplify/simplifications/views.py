"""Views of views, and views that show the same shape: exact, since a view has its operand's bytes."""

from __future__ import annotations

from xdsl.ir import SSAValue

from msc.dialects import ms
from msc.dialects.ms.base import ViewOp
from msc.dialects.ms.shapes import known
from msc.graph.emitter import Emitter
from msc.graph.simplify.simplifications.arithmetic import defined_by
from msc.graph.simplify.simplifications.registry import simplification


@simplification(ms.ReshapeOp, ms.FlattenOp, ms.SqueezeOp, ms.ExpandDimsOp)
def _view(op: ViewOp, emit: Emitter) -> SSAValue | None:
    """The operand if it has the shape already; a view of a view is one view of what that shows."""
    shape = op.result_shape()
    if not known(shape):
        return None
    if known(op.shape(0)) and op.shape(0) == shape:
        return op.operands[0]
    inner = defined_by(op.operands[0], ViewOp)
    return None if inner is None else emit.reshape(inner.operands[0], shape)
