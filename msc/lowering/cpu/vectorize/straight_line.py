"""Vector loops around a register tile: the unrolled loops of the tile become straight-line code, which vectorizes."""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap

from msc.dialects.loop import ForOp, LoadOp, LoopKind, StoreOp
from msc.lowering.cpu.vectorize.vector_body import VectorBody


def unroll_inside(loop: ForOp) -> None:
    """Replace the unrolled loops inside a loop by their iterations; what several of these load is loaded once."""
    inner = [op for op in loop.body.block.ops if isinstance(op, ForOp) and _is_unrolled(op)]
    for tile in inner:
        unroll_inside(tile)
        _replace(tile)
    if inner:
        _load_once(loop)


def _is_unrolled(loop: ForOp) -> bool:
    return loop.kind.data is LoopKind.UNROLL and loop.constant_range is not None


def _replace(tile: ForOp) -> None:
    block = tile.parent
    assert block is not None
    for k in tile.constant_range or ():
        block.insert_ops_before(VectorBody(tile, AffineExpr.constant(k), (), 1, {}).operations, tile)
    tile.detach()
    tile.erase()


def _load_once(loop: ForOp) -> None:
    """Of equal loads from buffers that the loop does not write, keep the first."""
    operations = list(loop.body.block.ops)
    written = {op.target for op in operations if isinstance(op, StoreOp)}
    known: dict[tuple[SSAValue, AffineMap, tuple[SSAValue, ...]], Operation] = {}
    for op in operations:
        if isinstance(op, LoadOp) and op.source not in written:
            first = known.setdefault((op.source, op.map, tuple(op.indices)), op)
            if first is not op:
                op.result.replace_all_uses_with(first.results[0])
                op.detach()
                op.erase()
