"""The operands of an attention in blocks: axes for the outer loops precede the matrix that an iteration reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import TypeVar

from xdsl.ir import Operation, SSAValue

from msc.analysis.constancy import is_constant
from msc.analysis.target import target_of
from msc.dialects import ms
from msc.dialects.element_types import BYTES
from msc.dialects.ms.linear import MatrixProductOp
from msc.dialects.ms.shapes import shape_of
from msc.graph.emitter import Emitter
from msc.graph_kernel.attention.attention import Attention
from msc.graph_kernel.attention.attention_blocks import Use
from msc.ir.typed import tensor_type


@dataclass(frozen=True)
class AxisBlocks:
    """`count` blocks of `size` along an axis, from `start` on."""

    start: int
    count: int
    size: int

    @property
    def end(self) -> int:
        return self.start + self.count * self.size

    def cut(self, emit: Emitter, value: SSAValue, axis: int) -> SSAValue:
        """The part of a value; the value itself where it has one place along the axis."""
        shape = emit.shape(value)
        if shape[axis] == 1 or (self.start, self.end) == (0, shape[axis]):
            return value
        begin, end = [0] * len(shape), list(shape)
        begin[axis], end[axis] = self.start, self.end
        return emit(ms.SliceOp, value, begin=begin, end=end)

    def split(self, places: int) -> tuple[int, int]:
        """An axis of this part as blocks and places in one; of an axis of one place, that."""
        return (1, 1) if places == 1 else (self.count, self.size)


def parts(extent: int, size: int) -> list[AxisBlocks]:
    """An axis in blocks, the last one smaller."""
    whole, rest = divmod(extent, size)
    found = (AxisBlocks(0, whole, size), AxisBlocks(extent - rest, 1, rest))
    return [part for part in found if part.count and part.size]


def operand(emit: Emitter, found: Attention, use: Use, rows: AxisBlocks, keys: AxisBlocks) -> SSAValue:
    """An operand as `[batch..., blocks of queries, blocks of keys, matrix]`; axes in which it does not vary are 1.

    Queries, keys and values have one a row. All others are `[keys, queries]`: what has both is transposed in front of
    all loops where it is constant, which costs no call anything, else block by block (`is_turned_late`).
    """
    op, number = use
    shape = shape_of(tensor_type(op.operands[number]))
    value = emit.reshape(stored(op, number), (*(1 for _ in range(len(found.shape) - len(shape))), *shape))
    if isinstance(op, MatrixProductOp):
        is_column = op is found.scores and number == 1 and not op.flag("transpose_b")
        is_column |= op is found.product and op.flag("transpose_b")
        value = transposed(emit, value) if is_column else value
        if op is found.scores and number == 0:
            return _vectors(emit, value, (rows.count, 1), rows)
        return _vectors(emit, value, (1, keys.count), keys)
    value = keys.cut(emit, rows.cut(emit, value, -2), -1)
    *batch, height, width = emit.shape(value)
    if 1 in (height, width):
        (r, row), (k, key) = rows.split(height), keys.split(width)
        return emit.reshape(value, (*batch, r, k, key, row))
    if is_turned_late(found, use):
        return emit.reshape(value, (*batch, rows.count, 1, rows.size, width))
    blocks = emit.reshape(value, (*batch, rows.count, rows.size, keys.count, keys.size))
    n = len(batch)
    return emit(ms.TransposeOp, blocks, perm=[*range(n), n, n + 2, n + 3, n + 1])


def stored(op: Operation, number: int) -> SSAValue:
    """What is kept of an operand until a block reads it: of one that a cast made wider, what the cast reads."""
    value = op.operands[number]
    if isinstance(op, MatrixProductOp) or not isinstance(cast := value.owner, ms.CastOp):
        return value
    return cast.operands[0] if BYTES[cast.dtype(0)] < BYTES[cast.result_dtype()] else value


def _vectors(emit: Emitter, value: SSAValue, axes: tuple[int, int], part: AxisBlocks) -> SSAValue:
    value = part.cut(emit, value, -2)
    *batch, _, size = emit.shape(value)
    return emit.reshape(value, (*batch, *axes, part.size, size))


def transposed(emit: Emitter, value: SSAValue) -> SSAValue:
    """The matrices of a value transposed: in front of a factor or other batch axes, undone where just transposed."""
    rank = len(emit.shape(value))
    swapped = [*range(rank - 2), rank - 1, rank - 2]
    match value.owner:
        case ms.TransposeOp() as op if op.ints("perm") == tuple(swapped):
            return op.operands[0]
        case ms.MulOp() as op if emit.shape(op.operands[0]) == emit.shape(value) and set(op.shape(1)) <= {1}:
            return emit(ms.MulOp, transposed(emit, op.operands[0]), op.operands[1])
        case ms.ReshapeOp() as op if op.shape(0)[-2:] == emit.shape(value)[-2:]:
            columns = transposed(emit, op.operands[0])
            return emit.reshape(columns, (*emit.shape(value)[:-2], *emit.shape(columns)[-2:]))
        case _:
            return emit(ms.TransposeOp, value, perm=swapped)


def is_turned_late(found: Attention, use: Use) -> bool:
    """Whether an operand is a mask of queries and keys that is read in place, and transposed a block at a time.

    That is done for each head. One in front of all loops is done once, but writes and reads a copy of the mask, which
    takes as long as some heads; of a constant there is no work in a call.
    """
    op, number = use
    shape = shape_of(tensor_type(op.operands[number]))
    if isinstance(op, MatrixProductOp) or 1 in (1, 1, *shape)[-2:] or is_constant(op.operands[number]):
        return False
    return prod(found.shape[:-2]) <= target_of(op).machine.code.copied_mask * prod(shape[:-2])


_Key = TypeVar("_Key")


def slices(emit: Emitter, given: Mapping[_Key, SSAValue], number: SSAValue | None = None) -> dict[_Key, SSAValue]:
    """What an iteration reads of some values."""
    return {key: slice_of(emit, value, number) for key, value in given.items()}


def slice_of(emit: Emitter, value: SSAValue, number: SSAValue | None) -> SSAValue:
    """What an iteration reads of a value with an axis for its loop: the slice of its number, or the only one."""
    count, *shape = emit.shape(value)
    return emit(ms.ExtractSliceOp, value, number) if number is not None and count > 1 else emit.reshape(value, shape)
