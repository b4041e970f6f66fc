"""Convolutions without the taps that read nothing but padding, as dilated ones on small images have."""

from __future__ import annotations

from xdsl.ir import SSAValue

from msc.dialects import ms
from msc.dialects.ms.convolution import ConvolutionOp
from msc.dialects.ms.shapes import known
from msc.graph.convolution_sections import Section, reached_by_taps, section_of
from msc.graph.emitter import Emitter
from msc.graph.simplify.simplifications.registry import simplification


@simplification(ms.Conv1dOp, ms.Conv2dOp, ms.Conv3dOp)
def _taps_in_padding(op: ConvolutionOp, emit: Emitter) -> SSAValue | None:
    """The kernel is cut to the taps that read data at some position: padding times a weight adds nothing."""
    if not op.is_padded or not known((*op.shape(0), *op.shape(1))):
        return None
    reading = [[tap for tap, results in enumerate(axis) if results] for axis in reached_by_taps(op)]
    if not all(reading):
        return None
    taps = [range(axis[0], axis[-1] + 1) for axis in reading]
    if [len(axis) for axis in taps] == list(op.kernel()):
        return None
    sections = [Section(axis, range(count)) for axis, count in zip(taps, op.result_shape()[2:], strict=True)]
    return section_of(op, sections, emit, op.bias)
