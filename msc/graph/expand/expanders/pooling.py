"""Pooling without padding: the input is padded before with what does not count."""

from __future__ import annotations

import math
from collections.abc import Sequence

from xdsl.ir import SSAValue

from msc.dialects import ms
from msc.dialects.ms.pooling import AvgPoolOp, BasicPoolingOp, PoolingOp
from msc.graph.emitter import Emitter
from msc.graph.expand.expanders.normalisation import row_mean
from msc.graph.expand.expanders.registry import expander
from msc.poly.compute import identity

Amounts = Sequence[tuple[int, int]]


def _with_overhang(op: PoolingOp) -> Amounts:
    """The padding, and beyond it what the last windows of `ceil_mode` reach over the end."""
    return [(begin, end + more) for (begin, end), more in zip(op.padding(), op.overhang(), strict=True)]


def _pool(pool: type[BasicPoolingOp], op: PoolingOp, x: SSAValue, emit: Emitter) -> SSAValue:
    sizes = {name: op.ints(name) for name in ("kernel_size", "stride", "dilation")}
    return emit(pool, x, dtype=op.plain("dtype"), **sizes)


@expander(ms.MaxPool1dOp, ms.MaxPool2dOp, ms.MaxPool3dOp, ms.SumPool1dOp, ms.SumPool2dOp, ms.SumPool3dOp)
def _basic_pool(op: BasicPoolingOp, emit: Emitter) -> SSAValue:
    emit.shape(op.x)
    neutral = float(identity(op.COMBINE, emit.dtype(op.x)))
    return _pool(type(op), op, emit.pad_spatial(op.x, _with_overhang(op), neutral), emit)


@expander(ms.AvgPool1dOp, ms.AvgPool2dOp, ms.AvgPool3dOp)
def _average_pool(op: AvgPoolOp, emit: Emitter) -> SSAValue:
    """Sums times the reciprocal of the number of elements of each window, a constant."""
    emit.shape(op.x)
    pool = (ms.SumPool1dOp, ms.SumPool2dOp, ms.SumPool3dOp)[op.SPATIAL - 1]
    sums = _pool(pool, op, emit.pad_spatial(op.x, _with_overhang(op)), emit)
    uniform = not any(op.overhang()) and (op.flag("count_include_pad") or not op.is_padded)
    if uniform:
        return emit(ms.MulOp, sums, 1 / math.prod(op.kernel()))
    return emit(ms.MulOp, sums, emit(ms.ReciprocalOp, _counts(pool, op, emit)))


def _counts(pool: type[BasicPoolingOp], op: AvgPoolOp, emit: Emitter) -> SSAValue:
    """How many elements of each window count: `[1, 1, spatial...]`; an expression of constants."""
    counted, uncounted = list(op.spatial()), _with_overhang(op)
    if op.flag("count_include_pad"):
        counted = [n + begin + end for n, (begin, end) in zip(counted, op.padding(), strict=True)]
        uncounted = [(0, more) for more in op.overhang()]
    ones = emit(ms.BroadcastToOp, emit.scalar(1.0, emit.dtype(op.x)), shape=[1, 1, *counted])
    return _pool(pool, op, emit.pad_spatial(ones, uncounted), emit)


@expander(ms.GlobalAvgPoolOp)
def _global_average_pool(op: ms.GlobalAvgPoolOp, emit: Emitter) -> SSAValue:
    return row_mean(op.x, range(2, len(op.shape(0))), emit)


@expander(ms.GlobalMaxPoolOp)
def _global_max_pool(op: ms.GlobalMaxPoolOp, emit: Emitter) -> SSAValue:
    return emit(ms.ReduceMaxOp, op.x, axis=list(range(2, len(op.shape(0)))), keep_dims=True)
