"""Matrix products that read transposed operands the other way round, and convolutions without taps in padding.

Both are exact: the same sums in one order, and padding times a weight adds nothing.
"""

from __future__ import annotations

from xdsl.ir import SSAValue

from msc.analysis.constancy import is_constant
from msc.dialects import ms
from msc.dialects.ms.convolution import ConvolutionOp
from msc.dialects.ms.linear import MatrixProductOp
from msc.dialects.ms.shapes import known
from msc.graph.convolution_sections import Section, reached_by_taps, section_of
from msc.graph.emitter import Emitter
from msc.graph.simplify.simplifications.arithmetic import defined_by
from msc.graph.simplify.simplifications.registry import simplification


@simplification(ms.MatmulOp, ms.BatchMatmulOp)
def _transposed_operand(op: MatrixProductOp, emit: Emitter) -> SSAValue | None:
    """A transposition of the last two axes becomes `transpose_a` or `transpose_b`; one of a weight is done before."""
    a, b = _untransposed(op.a), _untransposed(op.b)
    if a is None and b is None:
        return None
    flags = {
        "transpose_a": op.flag("transpose_a") != (a is not None),
        "transpose_b": op.flag("transpose_b") != (b is not None),
    }
    return emit(type(op), a or op.a, b or op.b, dtype=op.plain("dtype"), **flags)


def _untransposed(value: SSAValue) -> SSAValue | None:
    """What a transposition of the last two axes is of; None for other values and for constants."""
    inner = defined_by(value, ms.TransposeOp)
    if not isinstance(inner, ms.TransposeOp) or is_constant(value):
        return None
    perm = inner.permutation()
    rank = len(perm)
    swapped = (*range(rank - 2), rank - 1, rank - 2)
    return inner.x if rank >= 2 and perm == swapped else None


@simplification(ms.Conv1dOp, ms.Conv2dOp, ms.Conv3dOp)
def _taps_in_padding(op: ConvolutionOp, emit: Emitter) -> SSAValue | None:
    """The kernel is cut to the taps that read data at some position, as dilated ones on small images have."""
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
