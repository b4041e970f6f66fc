"""Convolutions as valid ones without bias, of an input that is padded before: every iteration domain is a box."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod

from xdsl.ir import SSAValue

from msc.dialects.ms.arithmetic import AddOp
from msc.dialects.ms.convolution import Conv1dOp, Conv2dOp, Conv3dOp, ConvolutionOp
from msc.dialects.ms.movement import ConcatOp, ReverseOp, SliceOp, TransposeOp
from msc.dialects.ms.padding import DilateOp
from msc.dialects.ms.transposed_convolution import (
    Conv1dTransposeOp,
    Conv2dTransposeOp,
    Conv3dTransposeOp,
    TransposedConvolutionOp,
)
from msc.graph_kernel.expanders.emitter import Emitter
from msc.graph_kernel.expanders.registry import expander

MUCH = 1.1
"""How much more than what is kept one convolution may compute before there are several of just that."""
MOST_PHASES = 8
"""Convolutions in place of one."""


def _with_bias(y: SSAValue, bias: SSAValue | None, rank: int, emit: Emitter) -> SSAValue:
    return y if bias is None else emit(AddOp, y, emit.along_channels(bias, rank))


@expander(Conv1dOp, Conv2dOp, Conv3dOp)
def _convolution(op: ConvolutionOp, emit: Emitter) -> SSAValue:
    emit.shape(op.x)
    x = emit.pad_spatial(op.x, op.padding())
    properties = {"stride": op.ints("stride"), "dilation": op.ints("dilation"), "group": op.int_("group")}
    return _with_bias(emit(type(op), x, op.weight, **properties), op.bias, op.SPATIAL + 2, emit)


@expander(Conv1dTransposeOp, Conv2dTransposeOp, Conv3dTransposeOp)
def _transposed_convolution(op: TransposedConvolutionOp, emit: Emitter) -> SSAValue:
    emit.shape(op.x)
    y = _by_phases(op, emit) if _has_even_phases(op) else _of_dilated(op, emit)
    return _with_bias(y, op.bias, op.SPATIAL + 2, emit)


def _forward(op: TransposedConvolutionOp) -> type[ConvolutionOp]:
    return (Conv1dOp, Conv2dOp, Conv3dOp)[op.SPATIAL - 1]


def _has_even_phases(op: TransposedConvolutionOp) -> bool:
    """Whether the strides divide the kernel, so that all offsets of the output meet the same number of taps.

    Filling up the taps with zeros would make NaN of infinite elements that no tap meets.
    """
    windows = op.windows()
    return any(w.stride > 1 for w in windows) and all(w.dilation == 1 and w.size % w.stride == 0 for w in windows)


def _by_phases(op: TransposedConvolutionOp, emit: Emitter) -> SSAValue:
    """One convolution of stride 1 for every offset of the output from a multiple of the stride, then interleaved.

    With x spread out by the stride most products would be with zeros: only each stride-th tap of the kernel meets an
    element of x, and which ones depends on the output's offset alone (sub-pixel convolution, Shi et al. 2016). The
    offsets are output channels of one convolution, or several where the padding would cut off much of its result.
    """
    strides = op.ints("stride")
    taps = [w.size // w.stride for w in op.windows()]
    x, weight = emit.pad_spatial(op.x, [(t - 1, t - 1) for t in taps]), _phase_weight(op, taps, emit)
    if _is_much_cut_off(op, taps):
        return _interleaved(op, [_phase(op, x, weight, place, emit) for place in product(*map(range, strides))], emit)
    y = emit(_forward(op), x, weight, group=op.int_("group"))
    n, _, *sizes = emit.shape(y)
    rank, outputs = op.SPATIAL, op.channels()[1]
    apart = emit.reshape(y, (n, outputs, *strides, *sizes))
    mixed = emit(TransposeOp, apart, perm=[0, 1, *(a for k in range(rank) for a in (2 + rank + k, 2 + k))])
    whole = [size * stride for size, stride in zip(sizes, strides, strict=True)]
    cut = zip(op.padding(), op.transposed_spatial(), whole, strict=True)
    return emit.pad_spatial(
        emit.reshape(mixed, (n, outputs, *whole)), [(-b, size - (n - b)) for (b, _), size, n in cut]
    )


def _is_much_cut_off(op: TransposedConvolutionOp, taps: Sequence[int]) -> bool:
    """Whether one convolution for all offsets would compute MUCH more than there is, and each has as much of it."""
    strides, found = op.ints("stride"), op.transposed_spatial()
    whole = [(n + t - 1) * stride for n, t, stride in zip(op.spatial(), taps, strides, strict=True)]
    inside = all(b + n <= all_ for (b, _), n, all_ in zip(op.padding(), found, whole, strict=True))
    even = all(n % stride == 0 for n, stride in zip(found, strides, strict=True))
    return even and inside and prod(strides) <= MOST_PHASES and prod(whole) >= MUCH * prod(found)


def _phase(op: TransposedConvolutionOp, x: SSAValue, weight: SSAValue, place: Sequence[int], emit: Emitter) -> SSAValue:
    """What lies at one place within each stride of the output; x is padded, `weight` that of all offsets."""
    strides, (channels, *kernel) = op.ints("stride"), emit.shape(weight)
    from_start = [r + begin for r, (begin, _) in zip(place, op.padding(), strict=True)]
    offsets = [n % stride for n, stride in zip(from_start, strides, strict=True)]
    number = sum(offset * prod(strides[k + 1 :]) for k, offset in enumerate(offsets))
    apart = emit.reshape(weight, (channels // prod(strides), prod(strides), *kernel))
    rank = len(kernel) + 2
    begin = [number if axis == 1 else 0 for axis in range(rank)]
    end = [number + 1 if axis == 1 else n for axis, n in enumerate(emit.shape(apart))]
    own = emit.reshape(emit(SliceOp, apart, begin=begin, end=end), (channels // prod(strides), *kernel))
    cuts: list[tuple[int, int]] = []
    for n, stride, found, taps, size in zip(
        from_start, strides, op.transposed_spatial(), kernel[1:], emit.shape(x)[2:], strict=True
    ):
        first, read = n // stride, found // stride + taps - 1
        cuts.append((-first, first + read - size))
    return emit(_forward(op), emit.pad_spatial(x, cuts), own, group=op.int_("group"))


def _interleaved(op: TransposedConvolutionOp, phases: Sequence[SSAValue], emit: Emitter) -> SSAValue:
    """The output of its phases, in the order of their places."""
    strides, rank = op.ints("stride"), op.SPATIAL
    n, outputs, *sizes = emit.shape(phases[0])
    joined = emit(ConcatOp, *(emit.reshape(y, (n, outputs, 1, *sizes)) for y in phases), axis=2)
    apart = emit.reshape(joined, (n, outputs, *strides, *sizes))
    mixed = emit(TransposeOp, apart, perm=[0, 1, *(a for k in range(rank) for a in (2 + rank + k, 2 + k))])
    return emit.reshape(mixed, (n, outputs, *op.transposed_spatial()))


def _phase_weight(op: TransposedConvolutionOp, taps: Sequence[int], emit: Emitter) -> SSAValue:
    """`[ic, oc / g, kernel...]` to `[oc * strides, ic / g, taps...]`, reversed along the taps."""
    strides, group, rank = op.ints("stride"), op.int_("group"), op.SPATIAL
    inputs, outputs, *_ = emit.shape(op.weight)
    parts = (n for pair in zip(taps, strides, strict=True) for n in pair)
    apart = emit.reshape(op.weight, (group, inputs // group, outputs, *parts))
    offsets, kept = range(4, 3 + 2 * rank, 2), range(3, 3 + 2 * rank, 2)
    ordered = emit(TransposeOp, apart, perm=[0, 2, *offsets, 1, *kept])
    joined = emit.reshape(ordered, (group * outputs * prod(strides), inputs // group, *taps))
    return emit(ReverseOp, joined, axis=list(range(2, 2 + rank)))


def _of_dilated(op: TransposedConvolutionOp, emit: Emitter) -> SSAValue:
    """The convolution, with the weight turned round, of x with zeros between and around its elements."""
    x = emit.pad_spatial(_dilated(op, emit), _surround(op))
    return emit(_forward(op), x, _turned_weight(op, emit), dilation=op.ints("dilation"), group=op.int_("group"))


def _dilated(op: TransposedConvolutionOp, emit: Emitter) -> SSAValue:
    interior = [stride - 1 for stride in op.ints("stride")]
    return emit(DilateOp, op.x, interior=[0, 0, *interior]) if any(interior) else op.x


def _surround(op: TransposedConvolutionOp) -> list[tuple[int, int]]:
    """What is added around the dilated input; negative where the padding cuts off more than the windows reach."""
    axes = zip(op.windows(), op.padding(), op.added_at_end(), strict=True)
    return [(w.span - 1 - begin, w.span - 1 - end + more) for w, (begin, end), more in axes]


def _turned_weight(op: TransposedConvolutionOp, emit: Emitter) -> SSAValue:
    """`[ic, oc / g, kernel...]` to `[oc, ic / g, kernel...]` within each of the g groups, reversed along the kernel."""
    inputs, outputs, *kernel = emit.shape(op.weight)
    group, rank = op.int_("group"), len(kernel)
    grouped = emit.reshape(op.weight, (group, inputs // group, outputs, *kernel))
    swapped = emit(TransposeOp, grouped, perm=[0, 2, 1, *range(3, 3 + rank)])
    joined = emit.reshape(swapped, (group * outputs, inputs // group, *kernel))
    return emit(ReverseOp, joined, axis=list(range(2, 2 + rank)))
