"""Gradients of what is read at computed places: sums at those places."""

from __future__ import annotations

from math import prod

from xdsl.ir import SSAValue

from msc.dialects import ms
from msc.dialects.element_types import element_type
from msc.graph.autodiff.emitting import GradientEmitter
from msc.graph.autodiff.registry import Contributions, gradient


@gradient(ms.GatherOp)
def _gather(op: ms.GatherOp, emit: GradientEmitter, g: SSAValue) -> Contributions:
    """Each row added to the one that it was read from."""
    axis, count, rank = op.checked_axis(), len(op.shape(1)), len(op.shape(0))
    chosen = range(axis, axis + count)
    front = [*chosen, *(k for k in range(len(emit.shape(g))) if k not in chosen)]
    rows = g if axis == 0 else emit(ms.TransposeOp, g, perm=front)
    order = [axis, *(k for k in range(rank) if k != axis)]
    zeros = emit.filled(0.0, [op.shape(0)[k] for k in order], op.dtype(0))
    summed = emit(ms.ScatterAddOp, zeros, op.indices, rows)
    back = [order.index(k) for k in range(rank)]
    return [summed if axis == 0 else emit(ms.TransposeOp, summed, perm=back), None]


@gradient(ms.ScatterAddOp)
def _scatter_add(op: ms.ScatterAddOp, emit: GradientEmitter, g: SSAValue) -> Contributions:
    return [g, None, emit(ms.GatherOp, g, op.indices, axis=0) if emit.wants(2) else None]


@gradient(ms.GatherElementsOp)
def _gather_elements(op: ms.GatherElementsOp, emit: GradientEmitter, g: SSAValue) -> Contributions:
    """As for rows of one element, whose number is counted through the whole tensor.

    Where each row has one index, as a loss over classes, the place that it names is compared with all: no loop.
    """
    axis, shape, count = op.checked_axis(), op.shape(0), prod(op.shape(1))
    i64 = element_type("i64")
    chosen = op.indices if op.dtype(1) == "i64" else emit(ms.CastOp, op.indices, dtype=i64)
    zero, size = emit.scalar(0, "i64"), emit.scalar(shape[axis], "i64")
    counted = emit(ms.SelectOp, emit(ms.LessOp, chosen, zero), emit(ms.AddOp, chosen, size), chosen)
    if op.shape(1) == (*shape[:axis], 1, *shape[axis + 1 :]):
        row = [n if k == axis else 1 for k, n in enumerate(shape)]
        is_read = emit(ms.EqualOp, counted, emit(ms.IotaOp, shape=row, axis=axis, dtype=i64))
        return [emit(ms.SelectOp, is_read, g, emit.scalar(0.0, op.dtype(0))), None]
    places: SSAValue | None = None
    for k in range(len(shape)):
        along = counted if k == axis else emit(ms.IotaOp, shape=list(op.shape(1)), axis=k, dtype=i64)
        places = emit.added(places, emit(ms.MulOp, along, emit.scalar(prod(shape[k + 1 :]), "i64")))
    assert places is not None
    zeros = emit.filled(0.0, [prod(shape)], op.dtype(0))
    summed = emit(ms.ScatterAddOp, zeros, emit.reshape(places, [count]), emit.reshape(g, [count]))
    return [emit.reshape(summed, shape), None]


@gradient(ms.ExtractSliceOp)
def _entry(op: ms.ExtractSliceOp, emit: GradientEmitter, g: SSAValue) -> Contributions:
    return [emit(ms.InsertSliceOp, emit.zeros(op.tensor(0)), op.index, g), None]


@gradient(ms.InsertSliceOp)
def _insert_slice(op: ms.InsertSliceOp, emit: GradientEmitter, g: SSAValue) -> Contributions:
    kept = emit(ms.InsertSliceOp, g, op.index, emit.zeros(op.tensor(2))) if emit.wants(0) else None
    return [kept, None, emit(ms.ExtractSliceOp, g, op.index) if emit.wants(2) else None]
