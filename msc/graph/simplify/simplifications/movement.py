"""Movements and views that move nothing, and pairs that are one: exact, since elements are only copied."""

from __future__ import annotations

from xdsl.ir import SSAValue

from msc.analysis.constancy import is_constant
from msc.dialects import ms
from msc.dialects.ms.base import MsOp, ViewOp
from msc.dialects.ms.shapes import known
from msc.graph.emitter import Emitter
from msc.graph.simplify.simplifications.arithmetic import defined_by
from msc.graph.simplify.simplifications.registry import simplification


@simplification(ms.BroadcastToOp, ms.TileOp, ms.PadOp, ms.DilateOp)
def _same_size(op: MsOp, emit: Emitter) -> SSAValue | None:
    """These add elements; if the shape is that of x, they add none."""
    return op.operands[0] if known(op.shape(0)) and op.shape(0) == op.result_shape() else None


@simplification(ms.ConcatOp)
def _of_one(op: ms.ConcatOp, emit: Emitter) -> SSAValue | None:
    """One tensor joined with none is itself."""
    return op.operands[0] if len(op.operands) == 1 else None


@simplification(ms.SliceOp)
def _whole(op: ms.SliceOp, emit: Emitter) -> SSAValue | None:
    """A slice of all places in their order is x."""
    places = zip(op.ranges(), op.shape(0), strict=True)
    return op.x if all(taken is not None and taken == range(size) for taken, size in places) else None


@simplification(ms.ReverseOp)
def _of_single_elements(op: ms.ReverseOp, emit: Emitter) -> SSAValue | None:
    """One element in opposite order is itself."""
    shape = op.shape(0)
    return op.x if all(shape[axis] == 1 for axis in op.ints("axis")) else None


@simplification(ms.TransposeOp)
def _transpose(op: ms.TransposeOp, emit: Emitter) -> SSAValue | None:
    """Without effect, after another transposition, or moving only axes of size 1, which keeps all bytes in order."""
    perm, shape = op.permutation(), op.shape(0)
    if perm == tuple(range(len(perm))):
        return op.x
    inner = defined_by(op.x, ms.TransposeOp)
    if isinstance(inner, ms.TransposeOp):
        first = inner.permutation()
        return emit(ms.TransposeOp, inner.x, perm=[first[axis] for axis in perm])
    moved = [axis for axis in perm if shape[axis] != 1]
    return emit.reshape(op.x, op.result_shape()) if known(shape) and moved == sorted(moved) else None


@simplification(ms.ResizeNearestOp)
def _resized_along_other_axes(op: ms.ResizeNearestOp, emit: Emitter) -> SSAValue | None:
    """Resizes along different axes are one: each copies elements."""
    inner = defined_by(op.x, ms.ResizeNearestOp)
    if not isinstance(inner, ms.ResizeNearestOp) or not known(inner.shape(0)) or not known(op.result_shape()):
        return None
    shapes = zip(inner.shape(0), inner.result_shape(), op.result_shape(), strict=True)
    if any(first != between != last for first, between, last in shapes):
        return None
    return emit(ms.ResizeNearestOp, inner.x, size=list(op.result_shape()))


@simplification(ms.GatherOp)
def _of_one_place(op: ms.GatherOp, emit: Emitter) -> SSAValue | None:
    """One computed place in the first axis is an entry, which is read where it lies."""
    if op.shape(1) or op.checked_axis() != 0 or is_constant(op.indices):
        return None
    return emit(ms.ExtractSliceOp, op.x, op.indices)


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
