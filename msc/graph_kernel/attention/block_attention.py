"""Pass `block-attention`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from msc.analysis.properties import BASIC_OPS, CONSTANTS_ARE_PARAMETERS, SHAPES_KNOWN, UNCLUSTERED, WEIGHTS_HOISTED
from msc.analysis.target import target_of
from msc.dialects.element_types import BYTES
from msc.dialects.ms.linear import MatrixProductOp
from msc.dialects.ms.movement import ConcatOp, TransposeOp
from msc.dialects.ms.slices import ExtractSliceOp, InsertSliceOp
from msc.dialects.open_sizes import has_open_sizes
from msc.graph.emitter import Emitter
from msc.graph.graph_loops import index, loop_over, put_in_place, stacked
from msc.graph_kernel.attention import attention_blocks
from msc.graph_kernel.attention.attention import Attention, attention
from msc.graph_kernel.attention.attention_blocks import Carried, Use, accumulator
from msc.graph_kernel.attention.attention_operands import AxisBlocks, is_turned_late, operand, parts, slice_of, slices
from msc.graph_kernel.attention.visible_keys import VisibleKeys, columns
from msc.ir.contracts import Contract
from msc.targets.machine import Machine


@dataclass(frozen=True)
class BlockAttention(ModulePass):
    """Compute attention a block of queries and keys at a time, where its scores would leave L2.

    Takes: a graph with `softmax(Q K^T ...) V`, any elementwise work (scale, mask) on the scores and any weights behind
    the softmax. Gives: loops over batches, heads and blocks of queries around one over blocks of keys that carries the
    largest score, the sum and the weighed values of each query (`attention_blocks`); the scores of one block are all
    that ever exists of them. Where blocks do not divide the queries or keys, a smaller block follows. Where a mask is
    known before a call, the loops over keys leave out the blocks that it hides (`visible_keys`).
    Left alone: scores that fit the cache, fewer queries than a vector has lanes, and all where calls decide sizes.
    Keeps: the meaning; the order of sums differs. The target's L2 decides.
    """

    name = "block-attention"
    contract = Contract(
        requires=(SHAPES_KNOWN, UNCLUSTERED),
        breaks=(BASIC_OPS, CONSTANTS_ARE_PARAMETERS, WEIGHTS_HOISTED),
        runs_after={"block-attention-gradients": "attention weights that a gradient also reads are materialized"},
    )

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if has_open_sizes(op):
            return
        machine = target_of(op).machine
        for product in [o for o in op.walk() if isinstance(o, MatrixProductOp)]:
            found = attention(product)
            if found is not None and _pays(found, machine):
                _Blocks(found, machine).replace()


def fills_blocks(scores: Sequence[int], machine: Machine) -> bool:
    """Whether there are keys for a block, and queries for the lanes of a vector."""
    *_, queries, keys = scores
    return queries >= machine.lanes(BYTES["f32"]) and keys >= block_sizes(machine)[0]


def block_sizes(machine: Machine) -> tuple[int, ...]:
    """Queries and keys of a block, the best first: as many as leave its scores in half of L1, a power of two.

    Others near it are for axes that they divide.
    """
    best = 1 << ((machine.l1 // (2 * BYTES["f32"])).bit_length() - 1) // 2
    return best, best * 5 // 4, best * 3 // 2, best * 3 // 4


def _pays(found: Attention, target: Machine) -> bool:
    return found.score_bytes > target.l2 and fills_blocks(found.shape, target)


def _parts(extent: int, machine: Machine) -> list[AxisBlocks]:
    """An axis in blocks: of a size that divides it, if one does, else with a smaller block at the end."""
    sizes = block_sizes(machine)
    return parts(extent, next((size for size in sizes if extent % size == 0), sizes[0]))


_Given: TypeAlias = Mapping[tuple[int, Use], SSAValue]
"""The operands for each part of the keys."""


class _Blocks:
    """Writes the loops."""

    def __init__(self, found: Attention, machine: Machine) -> None:
        self._found, self._emit = found, Emitter(found.product)
        self._seen = VisibleKeys(self._emit, found)
        *self._batch, rows, keys = found.shape
        self._rows, self._keys = _parts(rows, machine), _parts(keys, machine)

    def replace(self) -> None:
        """Put the loops in front of the product, and erase the operations that they stand for."""
        product, emit = self._found.product, self._emit
        values = [self._of_rows(emit, part) for part in self._rows]
        value = values[0] if len(values) == 1 else emit(ConcatOp, *values, axis=len(self._batch))
        put_in_place(emit, emit.reshape(value, product.result_shape()), "attention")
        for op in reversed(self._found.ops):
            Rewriter.erase_op(op)

    def _of_rows(self, emit: Emitter, rows: AxisBlocks) -> SSAValue:
        """The results for some of the queries, `[batch..., queries, size]`."""
        found = self._found
        given = {
            (k, use): operand(emit, found, use, rows, keys)
            for k, keys in enumerate(self._keys)
            for use in found.inputs()
        }
        self._tables = [self._seen.table(rows, keys) for keys in self._keys]
        value = self._loops(emit, (*self._batch, rows.count), given, rows, None)
        return emit.reshape(value, (*self._batch, rows.end - rows.start, found.size))

    def _loops(
        self, emit: Emitter, axes: Sequence[int], given: _Given, rows: AxisBlocks, number: SSAValue | None
    ) -> SSAValue:
        """The result for the axes that are left: a loop over the first of them, or none where its size is 1.

        `number` is that of the loop around.
        """
        if not axes:
            return self._block(emit, given, rows, number)
        count, *inner = axes
        if count == 1:
            value = self._loops(emit, inner, slices(emit, given), rows, None)
            return emit.reshape(value, (1, *emit.shape(value)))

        def collect(body: Emitter, number: SSAValue, stack: Sequence[SSAValue]) -> Sequence[SSAValue]:
            value = self._loops(body, inner, slices(body, given, number), rows, number)
            return [body(InsertSliceOp, stack[0], number, value)]

        return stacked(emit, (count, *inner, rows.size, self._found.size), self._found.product.dtype(0), collect)

    def _block(self, emit: Emitter, given: _Given, rows: AxisBlocks, number: SSAValue | None) -> SSAValue:
        """The attention of one block of queries."""
        found = self._found
        sums = attention_blocks.start(emit, rows.size, found.size, accumulator(found.product.dtype(0)))
        for k, keys in enumerate(self._keys):
            operands = {use: value for (n, use), value in given.items() if n == k}
            shape = (rows.size, keys.count, keys.size)
            late = {u: emit.reshape(v, shape) for u, v in operands.items() if is_turned_late(found, u)}
            table = None if (table := self._tables[k]) is None else slice_of(emit, table, number)
            sums = self._of_keys(emit, {**operands, **late}, keys, table, sums)
        last = {use: value for (k, use), value in given.items() if k == 0 and use[0] in found.after}
        return attention_blocks.finish(emit, found, slices(emit, last), sums)

    def _of_block(self, emit: Emitter, given: Mapping[Use, SSAValue], number: SSAValue | None) -> dict[Use, SSAValue]:
        """What an iteration over blocks of keys reads."""
        late = {use for use in given if is_turned_late(self._found, use)}
        return {use: (_transposed if use in late else slice_of)(emit, value, number) for use, value in given.items()}

    def _of_keys(
        self, emit: Emitter, given: Mapping[Use, SSAValue], keys: AxisBlocks, table: SSAValue | None, sums: Carried
    ) -> Carried:
        """One more part of the keys: a loop over blocks, those without and those with a mask if a table tells them."""

        def loop(found: Attention, first: SSAValue, last: SSAValue, sums: Carried) -> Carried:
            def next_block(body: Emitter, number: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
                return attention_blocks.step(body, found, self._of_block(body, given, number), Carried(*carried)).all

            return Carried(*loop_over(emit, (first, last), sums.all, next_block))

        if keys.count == 1:
            return attention_blocks.step(emit, self._found, self._of_block(emit, given, None), sums)
        if table is None:
            return loop(self._found, index(emit, 0), index(emit, keys.count), sums)
        start, plain, end = columns(emit, table, keys.count)
        return loop(self._found, plain, end, loop(self._seen.unmasked, start, plain, sums))


def _transposed(emit: Emitter, value: SSAValue, number: SSAValue | None) -> SSAValue:
    """A block of `[queries, blocks of keys, keys]` as `[keys, queries]`: collected query by query, then transposed."""
    rows, count, keys = emit.shape(value)

    def collect(body: Emitter, row: SSAValue, stack: Sequence[SSAValue]) -> Sequence[SSAValue]:
        return [body(InsertSliceOp, stack[0], row, slice_of(body, body(ExtractSliceOp, value, row), number))]

    block = emit.reshape(value, (rows, keys)) if count == 1 else stacked(emit, (rows, keys), emit.dtype(value), collect)
    return emit(TransposeOp, block, perm=[1, 0])
