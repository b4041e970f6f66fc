"""Rows that several loops read, one after the other: the last of them asks for the next row.

The first loop over a row waits for memory, and those after it, which find the row in L1, leave memory
idle. A softmax is such a kernel: the largest element, then the powers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.dialects.builtin import VectorType
from xdsl.ir import BlockArgument

from msc.dialects.loop import ForOp, LoadOp, PrefetchOp
from msc.lowering.cpu.prefetch.next_panel import distance
from msc.poly.affine import linear_form


def read_again(rows: ForOp) -> Sequence[LoadOp]:
    """The last loads of each part of a row that an earlier loop in the body of `rows` has loaded as well.

    Of vectors, from arguments, linear in `rows`; but not what a loop of a register tile reads for each of its rows.
    """
    seen: set[object] = set()
    last: dict[object, LoadOp] = {}
    for inner in [op for op in rows.body.block.ops if isinstance(op, ForOp) and op.constant_range is not None]:
        found = {(load.source, load.map, inner.constant_range): load for load in _row_loads(inner, rows)}
        last |= {key: load for key, load in found.items() if key in seen}
        seen |= found.keys()
    return list(last.values())


def prefetch_next_row(rows: ForOp, load: LoadOp) -> None:
    """Beside a load, ask for what it will load in the next iteration of `rows`."""
    block = load.parent
    assert block is not None
    op = PrefetchOp(load.source, load.map, load.indices, distance(load, rows))
    op.location = load.location
    block.insert_op_before(op, load)


def _row_loads(loop: ForOp, rows: ForOp) -> Iterator[LoadOp]:
    for op in loop.walk():
        if isinstance(op, LoadOp) and isinstance(op.result.type, VectorType) and isinstance(op.source, BlockArgument):
            linear = all(linear_form(e) is not None for e in op.map.results)
            if linear and _moves_with_all(op, rows) and distance(op, rows) > 0:
                yield op


def _moves_with_all(load: LoadOp, rows: ForOp) -> bool:
    """Whether each iteration of all loops from `rows` on reads something else."""
    around = load.parent_op()
    while isinstance(around, ForOp) and around.variable in load.indices and around is not rows:
        around = around.parent_op()
    return around is rows and rows.variable in load.indices
