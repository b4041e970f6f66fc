"""Gradients of what moves elements: the elements moved back, and those that were repeated summed."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from msc.dialects import ms
from msc.dialects.ms.base import ViewOp
from msc.graph.autodiff.derived import derived_gradient
from msc.graph.autodiff.emitting import GradientEmitter
from msc.graph.autodiff.registry import Contributions, gradient


@gradient(ms.BarrierOp)
def _barrier(op: ms.BarrierOp, emit: GradientEmitter, g: SSAValue) -> Contributions:
    """What is not read has no gradient."""
    return [g, None]


@gradient(ms.IdentityOp)
def _identity(op: ms.IdentityOp, emit: GradientEmitter, g: SSAValue) -> Contributions:
    return [g]


@gradient(ms.ReshapeOp, ms.FlattenOp, ms.SqueezeOp, ms.ExpandDimsOp)
def _view(op: ViewOp, emit: GradientEmitter, g: SSAValue) -> Contributions:
    return [emit.reshape(g, op.shape(0))]


@gradient(ms.TransposeOp)
def _transpose(op: ms.TransposeOp, emit: GradientEmitter, g: SSAValue) -> Contributions:
    perm = op.permutation()
    return [emit(ms.TransposeOp, g, perm=[perm.index(axis) for axis in range(len(perm))])]


@gradient(ms.BroadcastToOp)
def _broadcast(op: ms.BroadcastToOp, emit: GradientEmitter, g: SSAValue) -> Contributions:
    return [emit.sum_to(g, op.shape(0))]


@gradient(ms.TileOp)
def _tile(op: ms.TileOp, emit: GradientEmitter, g: SSAValue) -> Contributions:
    shape, multiples = op.padded_shape(), op.ints("multiples")
    apart = emit.reshape(g, [n for pair in zip(multiples, shape, strict=True) for n in pair])
    axes = [2 * k for k, m in enumerate(multiples) if m != 1]
    return [emit.reshape(emit(ms.ReduceSumOp, apart, axis=axes) if axes else apart, op.shape(0))]


@gradient(ms.ReverseOp)
def _reverse(op: ms.ReverseOp, emit: GradientEmitter, g: SSAValue) -> Contributions:
    return [emit(ms.ReverseOp, g, axis=list(op.ints("axis")))]


@gradient(ms.TrilOp, ms.TriuOp)
def _triangle(op: ms.TrilOp | ms.TriuOp, emit: GradientEmitter, g: SSAValue) -> Contributions:
    return [emit(type(op), g, diagonal=op.int_("diagonal"))]


@gradient(ms.ConcatOp)
def _concat(op: ms.ConcatOp, emit: GradientEmitter, g: SSAValue) -> Contributions:
    axis, first = op.int_("axis") % len(op.shape(0)), 0
    found: list[SSAValue | None] = []
    for k in range(len(op.operands)):
        size = op.shape(k)[axis]
        found.append(_cut(g, axis, first, size, emit) if emit.wants(k) else None)
        first += size
    return found


def _cut(g: SSAValue, axis: int, first: int, size: int, emit: GradientEmitter) -> SSAValue:
    shape = emit.shape(g)
    begin = [first if k == axis else 0 for k in range(len(shape))]
    end = [first + size if k == axis else n for k, n in enumerate(shape)]
    return emit(ms.SliceOp, g, begin=begin, end=end)


@gradient(ms.StackOp)
def _stack(op: ms.StackOp, emit: GradientEmitter, g: SSAValue) -> Contributions:
    axis = op.int_("axis") % len(emit.shape(g))
    cuts = (_cut(g, axis, k, 1, emit) if emit.wants(k) else None for k in range(len(op.operands)))
    return [None if cut is None else emit.reshape(cut, op.shape(k)) for k, cut in enumerate(cuts)]


@gradient(ms.SplitOp)
def _split(op: ms.SplitOp, emit: GradientEmitter, *g: SSAValue) -> Contributions:
    return [emit(ms.ConcatOp, *g, axis=op.int_("axis"))]


@gradient(ms.SliceOp)
def _slice(op: ms.SliceOp, emit: GradientEmitter, g: SSAValue) -> Contributions:
    """The elements put back to where they were taken from, with zeros around and between them."""
    ranges = [places for places in op.ranges() if places is not None]
    return [put_back(g, ranges, op.shape(0), emit)]


def put_back(g: SSAValue, ranges: Sequence[range], shape: Sequence[int], emit: GradientEmitter) -> SSAValue:
    """Zeros of a shape with the elements of `g` at the places that ranges give along each axis."""
    if any(len(places) == 0 for places in ranges):
        return emit.filled(0.0, shape, emit.dtype(g))
    turned = [k for k, places in enumerate(ranges) if places.step < 0 and len(places) > 1]
    if turned:
        g = emit(ms.ReverseOp, g, axis=turned)
    ordered = [places if places.step > 0 else places[::-1] for places in ranges]
    interior = [places.step - 1 if len(places) > 1 else 0 for places in ordered]
    if any(interior):
        g = emit(ms.DilateOp, g, interior=interior)
    before = [places[0] for places in ordered]
    after = [n - 1 - places[-1] for n, places in zip(shape, ordered, strict=True)]
    return emit(ms.PadOp, g, pad=[*before, *after]) if any(before) or any(after) else g


@gradient(ms.PadOp)
def _pad(op: ms.PadOp, emit: GradientEmitter, g: SSAValue) -> Contributions:
    if op.word("mode") != "constant":
        return derived_gradient(op, emit, [g])
    begin = [before for before, _ in op.amounts()]
    end = [first + n for first, n in zip(begin, op.shape(0), strict=True)]
    return [emit(ms.SliceOp, g, begin=begin, end=end)]


@gradient(ms.DilateOp)
def _dilate(op: ms.DilateOp, emit: GradientEmitter, g: SSAValue) -> Contributions:
    shape = emit.shape(g)
    strides = [i + 1 for i in op.ints("interior")]
    return [emit(ms.SliceOp, g, begin=[0] * len(shape), end=list(shape), strides=strides)]
