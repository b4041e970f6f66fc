"""Convolutions as valid ones without bias, of an input that is padded before: every iteration domain is a box.

Of a transposed one none multiplies by the zeros between spread elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from xdsl.ir import SSAValue

from msc.analysis.target import target_of
from msc.cost.register_tiles import many_channels
from msc.dialects import ms
from msc.dialects.ms.convolution import ConvolutionOp
from msc.dialects.ms.transposed_convolution import TransposedConvolutionOp
from msc.dialects.ms.windows import Window
from msc.graph.emitter import Emitter
from msc.graph.expand.expanders.registry import expander


def with_bias(y: SSAValue, bias: SSAValue | None, rank: int, emit: Emitter) -> SSAValue:
    """The outputs `[n, oc, spatial...]` plus the bias of each channel, if there is one."""
    return y if bias is None else emit(ms.AddOp, y, emit.along_channels(bias, rank))


@expander(ms.Conv1dOp, ms.Conv2dOp, ms.Conv3dOp)
def _convolution(op: ConvolutionOp, emit: Emitter) -> SSAValue:
    emit.shape(op.x)
    x = emit.pad_spatial(op.x, op.padding())
    sizes = {"stride": op.ints("stride"), "dilation": op.ints("dilation"), "group": op.int_("group")}
    return with_bias(emit(type(op), x, op.weight, **sizes, dtype=op.plain("dtype")), op.bias, op.SPATIAL + 2, emit)


@expander(ms.Conv1dTransposeOp, ms.Conv2dTransposeOp, ms.Conv3dTransposeOp)
def _transposed_convolution(op: TransposedConvolutionOp, emit: Emitter) -> SSAValue:
    emit.shape(op.x)
    if _has_even_phases(op) and _is_divided_by_strides(op) and _has_many_channels(op):
        return _subpixel(op, emit)
    if _has_even_phases(op):
        y = _of_all_phases(op, emit)
    elif _has_phases(op) and all(w.size == 1 for w in op.windows()):
        y = _of_single_taps(op, emit)
    elif _has_phases(op):
        y = _of_each_phase(op, emit)
    else:
        y = _of_dilated(op, emit)
    return with_bias(y, op.bias, op.SPATIAL + 2, emit)


def _has_many_channels(op: TransposedConvolutionOp) -> bool:
    return op.channels()[1] >= many_channels(target_of(op).machine)


def _forward(op: TransposedConvolutionOp) -> type[ConvolutionOp]:
    return (ms.Conv1dOp, ms.Conv2dOp, ms.Conv3dOp)[op.SPATIAL - 1]


def _has_even_phases(op: TransposedConvolutionOp) -> bool:
    """Whether the strides divide the kernel, so that all offsets of the output meet the same number of taps.

    Filling up the taps with zeros would make NaN of infinite elements that no tap meets.
    """
    windows = op.windows()
    return any(w.stride > 1 for w in windows) and all(w.dilation == 1 and w.size % w.stride == 0 for w in windows)


def _has_phases(op: TransposedConvolutionOp) -> bool:
    """Whether offsets of the output meet taps of their own, and each of them some; or a kernel has one tap."""
    windows = op.windows()
    apart = any(w.stride > 1 for w in windows) and all(w.dilation == 1 for w in windows)
    return apart and (all(w.size >= w.stride for w in windows) or all(w.size == 1 for w in windows))


def _is_divided_by_strides(op: TransposedConvolutionOp) -> bool:
    """Whether all offsets of the output from a multiple of the stride have as much of it, all in reach of windows."""
    axes = zip(op.spatial(), op.windows(), op.padding(), op.transposed_spatial(), strict=True)
    return all(
        found % w.stride == 0 and begin + found <= (n - 1) * w.stride + w.size for n, w, (begin, _), found in axes
    )


def _taps(op: TransposedConvolutionOp) -> list[int]:
    """How many elements of x each element of the output meets along each axis."""
    return [w.size // w.stride for w in op.windows()]


def _subpixel(op: TransposedConvolutionOp, emit: Emitter) -> SSAValue:
    """A kernel of its own for every offset of the output from a multiple of the stride.

    With x spread out by the stride most products would be with zeros: only each stride-th tap of the kernel meets an
    element of x, and which ones depends on the output's offset alone (sub-pixel convolution, Shi et al. 2016).
    """
    strides, found = op.ints("stride"), op.transposed_spatial()
    cuts = [divmod(begin, stride) for (begin, _), stride in zip(op.padding(), strides, strict=True)]
    amounts: list[tuple[int, int]] = []
    for n, taps, stride, size, (first, begin) in zip(op.spatial(), _taps(op), strides, found, cuts, strict=True):
        read = size // stride + taps - 1 + (stride - 1 + begin) // stride
        amounts.append((taps - 1 - first, read - n - (taps - 1 - first)))
    weight = _rolled(_phases_first(op, emit), [begin for _, begin in cuts], emit)
    x = emit.pad_spatial(op.x, amounts)
    y = emit(ms.SubpixelConvOp, x, weight, begin=[begin for _, begin in cuts], group=op.int_("group"))
    n, outputs, *pairs = emit.shape(y)
    return emit.reshape(with_bias(y, op.bias, len(pairs) + 2, emit), (n, outputs, *found))


def _phases_first(op: TransposedConvolutionOp, emit: Emitter) -> SSAValue:
    """The weight as `[strides..., oc, ic / g, taps...]`."""
    rank, strides = op.SPATIAL, op.ints("stride")
    weight = _phase_weight(op, emit)
    outputs, inputs, *taps = emit.shape(weight)
    apart = emit.reshape(weight, (outputs // prod(strides), *strides, inputs, *taps))
    return emit(ms.TransposeOp, apart, perm=[*range(1, 1 + rank), 0, *range(1 + rank, 2 + 2 * rank)])


def _rolled(value: SSAValue, begin: Sequence[int], emit: Emitter) -> SSAValue:
    """A tensor whose element `begin` along each of its first axes comes first, and what stood before it last."""
    for axis, first in enumerate(begin):
        shape = emit.shape(value)
        zeros, middle = [0 for _ in shape], [first if k == axis else 0 for k in range(len(shape))]
        before = [first if k == axis else n for k, n in enumerate(shape)]
        if first:
            parts = emit(ms.SliceOp, value, begin=middle, end=shape), emit(ms.SliceOp, value, begin=zeros, end=before)
            value = emit(ms.ConcatOp, *parts, axis=axis)
    return value


def _of_all_phases(op: TransposedConvolutionOp, emit: Emitter) -> SSAValue:
    """One convolution, whose output channels are those of all offsets, and what is kept of it when interleaved.

    So vectors are filled that few channels would not fill.
    """
    strides, rank = op.ints("stride"), op.SPATIAL
    x = emit.pad_spatial(op.x, [(t - 1, t - 1) for t in _taps(op)])
    y = emit(_forward(op), x, _phase_weight(op, emit), group=op.int_("group"))
    n, _, *sizes = emit.shape(y)
    outputs = op.channels()[1]
    apart = emit.reshape(y, (n, outputs, *strides, *sizes))
    mixed = emit(ms.TransposeOp, apart, perm=[0, 1, *(a for k in range(rank) for a in (2 + rank + k, 2 + k))])
    whole = [size * stride for size, stride in zip(sizes, strides, strict=True)]
    cut = zip(op.padding(), op.transposed_spatial(), whole, strict=True)
    return emit.pad_spatial(
        emit.reshape(mixed, (n, outputs, *whole)), [(-b, size - (n - b)) for (b, _), size, n in cut]
    )


def _phase_weight(op: TransposedConvolutionOp, emit: Emitter) -> SSAValue:
    """`[ic, oc / g, kernel...]` to `[oc * strides, ic / g, taps...]`, reversed along the taps."""
    strides, group, rank, taps = op.ints("stride"), op.int_("group"), op.SPATIAL, _taps(op)
    inputs, outputs, *_ = emit.shape(op.weight)
    parts = (n for pair in zip(taps, strides, strict=True) for n in pair)
    apart = emit.reshape(op.weight, (group, inputs // group, outputs, *parts))
    offsets, kept = range(4, 3 + 2 * rank, 2), range(3, 3 + 2 * rank, 2)
    ordered = emit(ms.TransposeOp, apart, perm=[0, 2, *offsets, 1, *kept])
    joined = emit.reshape(ordered, (group * outputs * prod(strides), inputs // group, *taps))
    return emit(ms.ReverseOp, joined, axis=list(range(2, 2 + rank)))


def _of_single_taps(op: TransposedConvolutionOp, emit: Emitter) -> SSAValue:
    """The convolution of x, with zeros between its elements."""
    y = emit(_forward(op), op.x, _turned_weight(op, op.weight, emit), group=op.int_("group"))
    return emit.pad_spatial(_dilated(op, y, emit), _surround(op))


def _of_each_phase(op: TransposedConvolutionOp, emit: Emitter) -> SSAValue:
    """A convolution for every offset of the output from a multiple of the stride, which do not meet as many taps."""
    axes = zip(op.spatial(), op.windows(), op.padding(), op.transposed_spatial(), strict=True)
    phases = [[_phase(n, w, begin, size, k) for k in range(w.stride)] for n, w, (begin, _), size in axes]
    return _interleaved(op, emit(ms.ConcatOp, *(_of_phase(op, p, emit) for p in product(*phases)), axis=1), emit)


@dataclass(frozen=True)
class _Phase:
    """Along an axis, the outputs with one offset from a multiple of the stride.

    They meet each stride-th tap from `first` on, and `before` and `after` elements around x.
    """

    first: int
    before: int
    after: int


def _phase(n: int, window: Window, begin: int, size: int, offset: int) -> _Phase:
    """Output `q * stride + offset` meets x at `q + ahead - t` with the taps `first + t * stride`."""
    ahead, first = divmod(offset + begin, window.stride)
    taps = -(-(window.size - first) // window.stride)
    return _Phase(first, taps - 1 - ahead, -(-size // window.stride) + ahead - n)


def _of_phase(op: TransposedConvolutionOp, phase: Sequence[_Phase], emit: Emitter) -> SSAValue:
    """The outputs of one offset along each axis."""
    shape, firsts = emit.shape(op.weight), [p.first for p in phase]
    weight = emit(ms.SliceOp, op.weight, begin=[0, 0, *firsts], end=shape, strides=[1, 1, *op.ints("stride")])
    x = emit.pad_spatial(op.x, [(p.before, p.after) for p in phase])
    return emit(_forward(op), x, _turned_weight(op, weight, emit), group=op.int_("group"))


def _interleaved(op: TransposedConvolutionOp, phases: SSAValue, emit: Emitter) -> SSAValue:
    """`[n, strides... * oc, sizes...]` to the output."""
    strides, rank, (_, outputs) = op.ints("stride"), op.SPATIAL, op.channels()
    n, _, *sizes = emit.shape(phases)
    apart = emit.reshape(phases, (n, *strides, outputs, *sizes))
    mixed = emit(ms.TransposeOp, apart, perm=[0, 1 + rank, *(a for k in range(rank) for a in (2 + rank + k, 1 + k))])
    whole = [size * stride for size, stride in zip(sizes, strides, strict=True)]
    found = zip(whole, op.transposed_spatial(), strict=True)
    return emit.pad_spatial(emit.reshape(mixed, (n, outputs, *whole)), [(0, size - n) for n, size in found])


def _of_dilated(op: TransposedConvolutionOp, emit: Emitter) -> SSAValue:
    """The convolution, with the weight turned round, of x with zeros between and around its elements."""
    x = emit.pad_spatial(_dilated(op, op.x, emit), _surround(op))
    weight = _turned_weight(op, op.weight, emit)
    return emit(_forward(op), x, weight, dilation=op.ints("dilation"), group=op.int_("group"))


def _dilated(op: TransposedConvolutionOp, x: SSAValue, emit: Emitter) -> SSAValue:
    interior = [stride - 1 for stride in op.ints("stride")]
    return emit(ms.DilateOp, x, interior=[0, 0, *interior]) if any(interior) else x


def _surround(op: TransposedConvolutionOp) -> list[tuple[int, int]]:
    """What is added around the dilated input; negative where the padding cuts off more than the windows reach."""
    axes = zip(op.windows(), op.padding(), op.added_at_end(), strict=True)
    return [(w.span - 1 - begin, w.span - 1 - end + more) for w, (begin, end), more in axes]


def _turned_weight(op: TransposedConvolutionOp, weight: SSAValue, emit: Emitter) -> SSAValue:
    """`[ic, oc / g, kernel...]` to `[oc, ic / g, kernel...]` within each of the g groups, reversed along the kernel."""
    inputs, outputs, *kernel = emit.shape(weight)
    group, rank = op.int_("group"), len(kernel)
    grouped = emit.reshape(weight, (group, inputs // group, outputs, *kernel))
    swapped = emit(ms.TransposeOp, grouped, perm=[0, 2, 1, *range(3, 3 + rank)])
    joined = emit.reshape(swapped, (group * outputs, inputs // group, *kernel))
    return emit(ms.ReverseOp, joined, axis=list(range(2, 2 + rank)))
