"""`loop.argsort` as loops: upstream has no operation that sorts."""

from __future__ import annotations

from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import IndexType, i64
from xdsl.ir import Block, Operation, SSAValue

from msc.dialects import loop
from msc.lowering.cpu.affine_to_arith import Emit, index_constant


def insertion_argsort(op: loop.ArgsortRowOp, emit: Emit) -> scf.ForOp:
    """A loop that inserts each key among the least before it, which stand in the scratch memory in ascending order.

    The constants that it needs are emitted.
    """
    zero, one, count = (index_constant(emit, value) for value in (0, 1, op.count))
    block = Block(arg_types=[IndexType()])
    (place,), inside = block.args, _at_end(block)
    key = inside(memref.LoadOp.get(op.keys, [*op.indices, place]))
    kept = inside(arith.MinSIOp(place, count))
    moved = scf.ForOp(zero, kept, one, [key, inside(arith.IndexCastOp(place, i64))], _move(op, key))
    block.add_op(moved)
    fits = inside(arith.CmpiOp(place, count, "slt"))
    block.add_ops([scf.IfOp(fits, [], [*_stores(op, place, *moved.results), scf.YieldOp()]), scf.YieldOp()])
    return scf.ForOp(zero, op.size, one, [], block)


def _move(op: loop.ArgsortRowOp, key: SSAValue) -> Block:
    """From the first greater key on, each moves to where the next one is; carried are a key and its place."""
    block = Block(arg_types=[IndexType(), key.type, i64])
    (at, *carried), inside = block.args, _at_end(block)
    here = [inside(memref.LoadOp.get(op.scratch, [at])), inside(memref.LoadOp.get(op.places, [*op.indices, at]))]
    less = inside(arith.CmpiOp(key, here[0], "slt"))
    first = [inside(arith.SelectOp(less, new, old)) for new, old in zip(carried, here, strict=True)]
    then = [inside(arith.SelectOp(less, old, new)) for new, old in zip(carried, here, strict=True)]
    block.add_ops([*_stores(op, at, *first), scf.YieldOp(*then)])
    return block


def _stores(op: loop.ArgsortRowOp, at: SSAValue, key: SSAValue, place: SSAValue) -> list[Operation]:
    """A key and its place."""
    places = [*op.indices, at]
    return [memref.StoreOp.get(key, op.scratch, [at]), memref.StoreOp.get(place, op.places, places)]


def _at_end(block: Block) -> Emit:
    def emit(op: Operation) -> SSAValue:
        block.add_op(op)
        return op.results[0]

    return emit
