"""Gradients of reductions and of sums along an axis."""

from __future__ import annotations

from math import prod

from xdsl.ir import SSAValue

from msc.dialects import ms
from msc.dialects.element_types import element_type
from msc.dialects.ms.reductions import reduced_axes
from msc.graph.autodiff.emitting import GradientEmitter
from msc.graph.autodiff.registry import Contributions, gradient

Reduction = ms.ReduceSumOp | ms.ReduceMeanOp | ms.ReduceMaxOp | ms.ReduceMinOp | ms.ReduceProdOp


def _kept(op: Reduction, value: SSAValue, emit: GradientEmitter) -> SSAValue:
    """A result of a reduction as it broadcasts against the operand."""
    axes = reduced_axes(op)
    return emit.reshape(value, [1 if k in axes else n for k, n in enumerate(op.shape(0))])


@gradient(ms.ReduceSumOp)
def _sum(op: ms.ReduceSumOp, emit: GradientEmitter, g: SSAValue) -> Contributions:
    return [_repeated(op, emit.cast(g, op.dtype(0)), emit)]


def _repeated(op: Reduction, g: SSAValue, emit: GradientEmitter) -> SSAValue:
    kept = _kept(op, g, emit)
    return kept if emit.shape(kept) == op.shape(0) else emit(ms.BroadcastToOp, kept, shape=list(op.shape(0)))


@gradient(ms.ReduceMeanOp)
def _mean(op: ms.ReduceMeanOp, emit: GradientEmitter, g: SSAValue) -> Contributions:
    count = prod(op.shape(0)[axis] for axis in reduced_axes(op))
    return [_repeated(op, emit(ms.MulOp, g, 1 / count) if count else g, emit)]


@gradient(ms.ReduceMaxOp, ms.ReduceMinOp)
def _extreme(op: ms.ReduceMaxOp | ms.ReduceMinOp, emit: GradientEmitter, g: SSAValue) -> Contributions:
    """To the extremes in equal parts, or to the first one."""
    if op.flag("to_first"):
        return [_to_first(op, emit, g)]
    x, y = op.operands[0], _kept(op, op.results[0], emit)
    chosen = emit.cast(emit(ms.EqualOp, x, y), op.dtype(0))
    count = emit(ms.ReduceSumOp, chosen, axis=list(reduced_axes(op)), keep_dims=True)
    return [emit(ms.MulOp, chosen, emit(ms.DivOp, _kept(op, g, emit), count))]


def _to_first(op: ms.ReduceMaxOp | ms.ReduceMinOp, emit: GradientEmitter, g: SSAValue) -> SSAValue:
    """To the extreme with the lowest number among those that are reduced to one; a NaN is one."""
    x, shape, axes = op.operands[0], op.shape(0), reduced_axes(op)
    chosen = emit(ms.LogicalOrOp, emit(ms.EqualOp, x, _kept(op, op.results[0], emit)), emit(ms.IsNanOp, x))
    number: SSAValue | None = None
    for place, axis in enumerate(axes):
        along = emit(ms.IotaOp, shape=list(shape), axis=axis, dtype=element_type("i64"))
        stride = prod(shape[k] for k in axes[place + 1 :])
        number = emit.added(number, along if stride == 1 else emit(ms.MulOp, along, emit.scalar(stride, "i64")))
    if number is None:
        return emit.reshape(g, shape)
    behind = emit.scalar(prod(shape[k] for k in axes), "i64")
    first = emit(ms.ReduceMinOp, emit(ms.SelectOp, chosen, number, behind), axis=list(axes), keep_dims=True)
    return emit(ms.SelectOp, emit(ms.EqualOp, number, first), _kept(op, g, emit), emit.scalar(0.0, emit.dtype(g)))


@gradient(ms.ReduceProdOp)
def _product(op: ms.ReduceProdOp, emit: GradientEmitter, g: SSAValue) -> Contributions:
    """Times the product of all others: of those before and of those behind, so that zeros divide nothing."""
    axes, shape = reduced_axes(op), op.shape(0)
    kept = [k for k in range(len(shape)) if k not in axes]
    perm, count = [*kept, *axes], prod(shape[k] for k in axes)
    outer = [shape[k] for k in kept]
    ordered = emit(ms.TransposeOp, emit.cast(op.operands[0], emit.dtype(g)), perm=perm)
    rows = emit.reshape(ordered, (prod(outer), count))
    others = emit(ms.MulOp, _products(rows, count, True, emit), _products(rows, count, False, emit))
    apart = emit.reshape(others, [*outer, *(shape[k] for k in axes)])
    back = emit(ms.TransposeOp, apart, perm=[perm.index(k) for k in range(len(shape))])
    return [emit.cast(emit(ms.MulOp, back, _kept(op, g, emit)), op.dtype(0))]


def _products(rows: SSAValue, count: int, before: bool, emit: GradientEmitter) -> SSAValue:
    """Of each element the product of those before it in its row, or behind it; each step doubles the reach."""
    value, reach = _shifted(rows, 1, before, emit), 1
    while reach < count:
        value = emit(ms.MulOp, value, _shifted(value, reach, before, emit))
        reach *= 2
    return value


def _shifted(rows: SSAValue, by: int, before: bool, emit: GradientEmitter) -> SSAValue:
    """Rows moved by some places, with ones where nothing comes from."""
    outer, count = emit.shape(rows)
    by = min(by, count)
    begin, end = ([0, 0], [outer, count - by]) if before else ([0, by], [outer, count])
    pad = [0, by, 0, 0] if before else [0, 0, 0, by]
    return emit(ms.PadOp, emit(ms.SliceOp, rows, begin=begin, end=end), pad=pad, value=1.0)


@gradient(ms.CumsumOp)
def _cumulative_sum(op: ms.CumsumOp, emit: GradientEmitter, g: SSAValue) -> Contributions:
    """The sums from the other end."""
    flags = {"exclusive": op.flag("exclusive"), "reverse": not op.flag("reverse")}
    return [emit(ms.CumsumOp, g, axis=op.int_("axis"), **flags)]
