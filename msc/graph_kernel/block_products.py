"""Pass `block-products`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from msc.analysis.constancy import Constancy
from msc.analysis.properties import CONSTANTS_ARE_PARAMETERS, SHAPES_KNOWN, UNCLUSTERED, WEIGHTS_HOISTED
from msc.analysis.target import target_of
from msc.cost.register_tiles import rows_kept_beyond
from msc.dialects.element_types import BYTES
from msc.dialects.ms.arithmetic import AddOp
from msc.dialects.ms.linear import MatmulOp
from msc.dialects.ms.movement import BroadcastToOp, TransposeOp
from msc.dialects.ms.slices import ExtractSliceOp
from msc.dialects.open_sizes import has_open_sizes
from msc.graph.emitter import Emitter
from msc.graph.graph_loops import index, loop_over, put_in_place
from msc.ir.contracts import Contract
from msc.targets.machine import Machine

LEAST_STEPS = 16
"""Of a block: fewer would load and store the sums too often."""


@dataclass(frozen=True)
class BlockProducts(ModulePass):
    """Compute products of some rows a block of the reduction at a time, where rows of the right operand share sets.

    Takes: a graph. Gives: in place of an `ms.matmul` of f32 with a right operand that is no constant a loop that
    carries the sums: each iteration adds the product of a block of columns of the left operand, which is stored by
    blocks, and of rows of the right. Without blocks a panel of columns has a line in every row; where these lie so far
    apart that L2 does not keep all of them, each tile of rows reads the panel from beyond it. A block
    stays there, and comes in as it lies in memory.
    Left alone: products whose rows one register tile takes, or that are so many that the right operand is packed;
    sums that take much of L2; reductions with no block that divides them; few rows for several
    threads; all where calls decide sizes.
    Keeps: the meaning; sums are rounded block by block. The target's L2 and threads
    decide.
    """

    name = "block-products"
    contract = Contract(
        requires=(SHAPES_KNOWN, UNCLUSTERED),
        breaks=(CONSTANTS_ARE_PARAMETERS, WEIGHTS_HOISTED),
        runs_after={
            "block-attention": "the products of an attention are parts of it",
        },
    )

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if has_open_sizes(op):
            return
        target, constancy = target_of(op), Constancy()
        least = target.machine.sums_in_flight + 1 if target.team == 1 else target.machine.synchronisation.block_rows
        most = 4 * target.machine.code.packed_rows
        for product in [o for o in op.walk() if isinstance(o, MatmulOp) and isinstance(o.parent_op(), FuncOp)]:
            fits = least <= product.result_shape()[0] < most and not constancy.of(product.operands[1])
            steps = _steps(product, target.machine) if fits else None
            if steps is not None:
                _replace(product, steps)


def _steps(product: MatmulOp, target: Machine) -> int | None:
    """The steps of a block, None where blocks do not pay or do not divide the reduction."""
    (rows, steps), columns = product.shape(0), product.shape(1)[-1]
    row_bytes = columns * BYTES[product.dtype(1)]
    plain = product.dtype(0) == "f32" and not product.flag("transpose_a") and not product.flag("transpose_b")
    if not plain or rows * row_bytes > target.l2 // 2 or steps <= rows_kept_beyond(target, row_bytes):
        return None
    most = max(LEAST_STEPS, target.l2 // 16 // row_bytes)
    block = max(n for n in range(1, most + 1) if steps % n == 0)
    return block if block >= LEAST_STEPS else None


def _replace(product: MatmulOp, steps: int) -> None:
    """Put the loop over blocks of so many steps in the place of a product."""
    emit, (rows, extent), columns = Emitter(product), product.shape(0), product.shape(1)[1]
    blocks = extent // steps
    left = emit(TransposeOp, emit.reshape(product.operands[0], (rows, blocks, steps)), perm=[1, 0, 2])
    right = emit.reshape(product.operands[1], (blocks, steps, columns))
    zeros = emit(BroadcastToOp, emit.scalar(0, product.dtype(0)), shape=[rows, columns])

    def add(body: Emitter, number: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
        part = body(MatmulOp, body(ExtractSliceOp, left, number), body(ExtractSliceOp, right, number))
        return [body(AddOp, carried[0], part)]

    (value,) = loop_over(emit, (index(emit, 0), index(emit, blocks)), [zeros], add)
    put_in_place(emit, value, "matmul")
