"""Convolutions without the taps that read nothing but padding, as dilated ones on small images have."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain

from xdsl.ir import SSAValue

from msc.dialects.ms.convolution import Conv1dOp, Conv2dOp, Conv3dOp, ConvolutionOp
from msc.dialects.ms.shapes import known
from msc.dialects.ms.windows import Window
from msc.graph.emitter import Emitter
from msc.graph.simplify.simplifications.registry import simplification


@dataclass(frozen=True)
class _Cut:
    """The taps of a window that read data along an axis, and the padding that they need; negative padding cuts data."""

    taps: range
    padding: tuple[int, int]


@simplification(Conv1dOp, Conv2dOp, Conv3dOp)
def _taps_in_padding(op: ConvolutionOp, emit: Emitter) -> SSAValue | None:
    """The kernel is cut to the taps that read data at some position: padding times a weight adds nothing."""
    if not op.is_padded or not known((*op.shape(0), *op.shape(1))):
        return None
    places = zip(op.windows(), op.padding(), op.spatial(), op.result_shape()[2:], strict=True)
    cuts = [_cut(window, padding[0], size, count) for window, padding, size, count in places]
    if not all(cut.taps for cut in cuts) or [len(cut.taps) for cut in cuts] == list(op.kernel()):
        return None
    pad = list(chain.from_iterable((max(begin, 0), max(end, 0)) for begin, end in (cut.padding for cut in cuts)))
    image = emit.pad_spatial(op.x, [(min(begin, 0), min(end, 0)) for begin, end in (cut.padding for cut in cuts)])
    sizes = zip(cuts, op.kernel(), strict=True)
    weight = emit.pad_spatial(op.weight, [(-cut.taps.start, cut.taps.stop - size) for cut, size in sizes])
    return emit(
        type(op),
        *(image, weight, *(() if op.bias is None else (op.bias,))),
        pad_mode="pad",
        pad=pad,
        stride=op.ints("stride"),
        dilation=op.ints("dilation"),
        group=op.int_("group"),
    )


def _cut(window: Window, begin: int, size: int, count: int) -> _Cut:
    """What is left of a window along an axis of `size` elements, with `begin` before them, at `count` positions."""
    reads = [tap for tap in range(window.size) if _reads_data(window, tap * window.dilation - begin, size, count)]
    taps = range(reads[0], reads[-1] + 1) if reads else range(0)
    first = begin - taps.start * window.dilation
    covered = (count - 1) * window.stride + (len(taps) - 1) * window.dilation + 1
    end = covered - first - size
    return _Cut(taps, (first, end if end > 0 or end <= -window.stride else 0))


def _reads_data(window: Window, offset: int, size: int, count: int) -> bool:
    """Whether a tap at `offset` from the window's place reads one of `size` elements at one of `count` positions."""
    first = max(-(offset // window.stride), 0)
    return first < count and first * window.stride + offset < size
