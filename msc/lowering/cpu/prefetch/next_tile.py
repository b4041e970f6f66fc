"""Where the rows lie that the next register tile reads, an element of each row at a step.

Rows that a tile reads step by step are as many streams, each of which begins anew with each tile, and each beginning
waits for memory. Rows that lie one after the other are one block, and the block of the next tile follows: asked for
evenly while this tile reads its own, it arrives beside the arithmetic.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap

from msc.dialects.loop import ForOp, LoadOp
from msc.lowering.cpu.prefetch.next_panel import PrefetchAddress, counts_from_zero, distance, trips


def next_tile(loop: ForOp, tile: Sequence[ForOp], load: LoadOp) -> PrefetchAddress | None:
    """The place in the next tile's rows that is as far in them as `loop` has come in these.

    `load` stands below `loop` and the unrolled loops of `tile`. None where the rows that they read are no block, or the
    loop over tiles is not right around.
    """
    tiles, rows = loop.parent_op(), [t for t in tile if t.variable in load.indices]
    if not isinstance(tiles, ForOp) or len(rows) != 1 or not {tiles.variable, loop.variable} <= {*load.indices}:
        return None
    row, steps = rows[0], trips(loop)
    follows = distance(load, row) == steps and distance(load, tiles) == steps * trips(row)
    whole = counts_from_zero(loop) and counts_from_zero(row) and distance(load, loop) == 1
    return _place(load, loop, row, distance(load, tiles)) if follows and whole and trips(tiles) > 1 else None


def _place(load: LoadOp, loop: ForOp, row: ForOp, ahead: int) -> PrefetchAddress:
    """From the first element of the block, the steps so far of all its rows, and the block."""
    indices = tuple(v for v in dict.fromkeys(load.indices) if v is not row.variable)
    dims: dict[SSAValue, AffineExpr] = {value: AffineExpr.dimension(k) for k, value in enumerate(indices)}
    start = {**dims, row.variable: AffineExpr.constant(0), loop.variable: AffineExpr.constant(0)}
    results = tuple(e.replace_dims_and_symbols([start[v] for v in load.indices], []) for e in load.map.results)
    return PrefetchAddress(AffineMap(len(indices), 0, results), indices, dims[loop.variable] * trips(row) + ahead)
