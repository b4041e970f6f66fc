"""The block of attention: queries as columns, keys and values by blocks, with the values carried between blocks.

For each query the loop carries the largest score so far, the sum of the exponentials and the sum of the weighted
values. A block with a larger score rescales the earlier results (online softmax: Milakov and Gimelshein, Online
normalizer calculation for softmax, 2018; Dao et al., FlashAttention, 2022).
Scores are stored transposed, `[keys, queries]`: the queries of a block are the lanes of vectors, all reductions run
down columns, keys and values are read in place, an element at a time, and only the queries are transposed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from xdsl.ir import Operation, SSAValue

from msc.dialects import ms
from msc.dialects.arrays import numpy_dtype
from msc.dialects.element_types import BYTES, dtype_name
from msc.dialects.ms.shapes import shape_of
from msc.graph.emitter import Emitter
from msc.graph_kernel.attention.attention import Attention
from msc.ir.typed import tensor_type

Use: TypeAlias = tuple[Operation, int]
"""An operand of an operation of the attention."""


@dataclass(frozen=True)
class Carried:
    """Of each query of a block: largest score and sum, `[1, queries]`, and weighed values, `[size, queries]`."""

    largest: SSAValue
    total: SSAValue
    values: SSAValue

    @property
    def all(self) -> tuple[SSAValue, SSAValue, SSAValue]:
        """In the order of the fields."""
        return self.largest, self.total, self.values


def accumulator(dtype: str) -> str:
    """The element type in which an attention of a type is summed."""
    return "f32" if BYTES[dtype] < 4 else dtype


def start(emit: Emitter, queries: int, size: int, dtype: str) -> Carried:
    """Before the first block. The smallest number is no infinity, so that masked scores less it are no NaN."""
    least = float(np.finfo(numpy_dtype(dtype)).min)
    one, many = [1, queries], [size, queries]
    scalars = (emit.scalar(least, dtype), emit.scalar(0, dtype))
    return Carried(
        emit(ms.BroadcastToOp, scalars[0], shape=one),
        emit(ms.BroadcastToOp, scalars[1], shape=one),
        emit(ms.BroadcastToOp, scalars[1], shape=many),
    )


def step(emit: Emitter, found: Attention, given: Mapping[Use, SSAValue], before: Carried) -> Carried:
    """One more block of keys and values; `given` are the operands for it, transposed but for keys, values, queries."""
    scores = emit(ms.MatmulOp, given[found.scores, 1], given[found.scores, 0], transpose_b=True)
    scores = emit.cast(_chain(emit, found.before, given, scores), emit.dtype(before.total))
    largest = emit(ms.MaximumOp, before.largest, emit(ms.ReduceMaxOp, scores, axis=[0], keep_dims=True))
    shrunk = emit(ms.ExpOp, emit(ms.SubOp, before.largest, largest))
    powers = emit(ms.ExpOp, emit(ms.SubOp, scores, largest))
    total = emit(ms.AddOp, emit(ms.MulOp, before.total, shrunk), emit(ms.ReduceSumOp, powers, axis=[0], keep_dims=True))
    weights = _chain(emit, found.weighing, given, powers)
    values = emit.cast(given[found.product, 1], emit.dtype(weights))
    products = emit(ms.MatmulOp, values, weights, transpose_a=True)
    return Carried(largest, total, emit(ms.AddOp, emit(ms.MulOp, before.values, shrunk), products))


def finish(emit: Emitter, found: Attention, given: Mapping[Use, SSAValue], sums: Carried) -> SSAValue:
    """The results of the block, `[queries, size]`; of a query whose scores are all masked, NaN as in a softmax.

    Under a guard those are zeros: no other query has a sum of powers that is not positive.
    """
    normal = emit(ms.MulOp, sums.values, emit(ms.ReciprocalOp, sums.total))
    normal = emit(ms.SelectOp, emit(ms.GreaterOp, sums.total, 0.0), normal, 0.0) if found.guard else normal
    normal = emit.cast(normal, found.product.dtype(0))
    return emit(ms.TransposeOp, _chain(emit, found.after, given, normal), perm=[1, 0])


def _chain(emit: Emitter, ops: Sequence[Operation], given: Mapping[Use, SSAValue], value: SSAValue) -> SSAValue:
    """Elementwise operations one after the other; the operand that is not given is the value so far."""
    for op in ops:
        operands = [_read(emit, (op, i), given, value) for i in range(len(op.operands))]
        type_ = tensor_type(op.results[0])
        made = type(op).create(
            operands=operands,
            result_types=[type(type_)(type_.element_type, shape_of(tensor_type(value)))],
            properties=op.properties,
        )
        made.location = op.location
        emit.ops.append(made)
        value = made.results[0]
    return value


def _read(emit: Emitter, use: Use, given: Mapping[Use, SSAValue], value: SSAValue) -> SSAValue:
    """An operand, in the type of the operation where it is stored narrower (`stored`)."""
    op, number = use
    if use not in given:
        return value
    dtype = dtype_name(tensor_type(op.operands[number]).element_type)
    return given[use] if dtype is None else emit.cast(given[use], dtype)
