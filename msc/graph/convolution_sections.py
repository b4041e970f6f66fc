"""Parts of a convolution: some of its taps, for some of its results. They add up to the whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from xdsl.ir import SSAValue

from msc.dialects.ms.convolution import ConvolutionOp
from msc.dialects.ms.windows import Window
from msc.graph.emitter import Emitter


@dataclass(frozen=True)
class Section:
    """Neighbouring taps of a window along an axis, and neighbouring results to which they contribute."""

    taps: range
    results: range

    @property
    def size(self) -> int:
        """Products along the axis."""
        return len(self.taps) * len(self.results)

    def padding(self, window: Window, begin: int, size: int) -> tuple[int, int]:
        """What the section needs before and after `size` elements of the image, of which the whole needs `begin`.

        Negative where it begins further inside. Elements behind it are left if no further result would fit them.
        """
        first = self.results[0] * window.stride + self.taps[0] * window.dilation - begin
        last = self.results[-1] * window.stride + self.taps[-1] * window.dilation - begin
        end = last + 1 - size
        return -first, end if end > 0 or end <= -window.stride else 0


def reached_by_taps(op: ConvolutionOp) -> Sequence[Sequence[range]]:
    """For each tap along each spatial axis the results for which it reads data, not padding."""
    places = zip(op.windows(), op.padding(), op.spatial(), op.result_shape()[2:], strict=True)
    return [
        [_reached(tap * window.dilation - begin, window.stride, size, count) for tap in range(window.size)]
        for window, (begin, _), size, count in places
    ]


def _reached(place: int, stride: int, size: int, count: int) -> range:
    """Of `count` results those for which a tap reads one of `size` elements: at `place` for the first, `stride` on."""
    first, stop = max(-(place // stride), 0), min((size - 1 - place) // stride + 1, count)
    return range(first, stop) if first < stop else range(0)


def section_of(op: ConvolutionOp, sections: Sequence[Section], emit: Emitter, bias: SSAValue | None = None) -> SSAValue:
    """A convolution of a section along each axis: of the part of the image and of the weight that it needs."""
    paddings = [
        section.padding(window, begin, size)
        for section, window, (begin, _), size in zip(sections, op.windows(), op.padding(), op.spatial(), strict=True)
    ]
    image = emit.pad_spatial(op.x, [(min(begin, 0), min(end, 0)) for begin, end in paddings])
    sizes = zip(sections, op.kernel(), strict=True)
    weight = emit.pad_spatial(op.weight, [(-each.taps.start, each.taps.stop - size) for each, size in sizes])
    return convolution_like(op, emit, image, weight, bias, [(max(begin, 0), max(end, 0)) for begin, end in paddings])


def convolution_like(
    op: ConvolutionOp,
    emit: Emitter,
    image: SSAValue,
    weight: SSAValue,
    bias: SSAValue | None,
    padding: Sequence[tuple[int, int]],
) -> SSAValue:
    """A convolution with the strides, dilations and groups of another one."""
    return emit(
        type(op),
        *(image, weight, *(() if bias is None else (bias,))),
        pad_mode="pad",
        pad=list(chain.from_iterable(padding)),
        stride=op.ints("stride"),
        dilation=op.ints("dilation"),
        group=op.int_("group"),
        dtype=op.plain("dtype"),
    )
