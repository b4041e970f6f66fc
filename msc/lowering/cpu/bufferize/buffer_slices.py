"""ms.extract_slice and ms.insert_slice on buffers: addresses inside a buffer, and values computed in their slice.

A slice is read in place. `ms.insert_slice` writes into the buffer of its operand if nobody reads that afterwards,
otherwise into a copy. The value is computed directly in the slice if its producer follows all other uses of the
operand.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import arith, memref, scf, tensor
from xdsl.dialects.builtin import IndexType
from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue, Use

from msc.analysis.index_ranges import index_range
from msc.dialects.loop import BufferSliceOp
from msc.dialects.ms.base import ViewOp
from msc.dialects.ms.slices import ExtractSliceOp, InsertSliceOp, SliceAccessOp
from msc.ir.typed import memref_type, static_shape
from msc.lowering.cpu.affine_to_arith import index_constant
from msc.lowering.cpu.bufferize.bufferizer import Bufferizer
from msc.lowering.cpu.bufferize.destinations import PRODUCERS, dead_before, is_produced_in, view_root
from msc.support.naming import valid_hint


def bufferize_extract_slice(state: Bufferizer, op: Operation) -> None:
    """The address of the entry in the buffer of x."""
    if isinstance(op, ExtractSliceOp):
        state.values[op.result] = _entry(state, state.values[op.x], _place(state, op), op.result.name_hint)


def bufferize_insert_slice(state: Bufferizer, op: Operation) -> None:
    """The buffer of x, or a copy of it; the value is copied into its entry unless it was computed there."""
    if not isinstance(op, InsertSliceOp):
        return
    place = _place(state, op)
    if _overwrites(state, op):
        state.values[op.result] = state.values[op.x]
    else:
        state.emit(memref.CopyOp(state.values[op.x], state.result_buffer(op.result)))
    buffer, value = state.values[op.result], state.values[op.value]
    if not _is_entry(value, buffer, place):
        entry = _entry(state, buffer, place, None)
        state.emit(memref.CopyOp(state.view(value, memref_type(entry)), entry))


def slice_destination(state: Bufferizer, result: SSAValue) -> SSAValue | None:
    """The entry that `result` may be computed in: one that it is written into, if nothing reads the whole before."""
    for op in _collectors(result):
        place = place_of(op)
        if place is None or place not in state.values or op.x not in state.values or not _overwrites(state, op):
            continue
        if is_produced_in(op.parent, result) and dead_before(result.owner, view_root(op.x), ignoring=op):
            return _entry(state, state.values[op.x], state.values[place], result.name_hint)
    return None


def _collectors(result: SSAValue) -> Iterator[InsertSliceOp]:
    """The operations that write a value, or a view of it, into an entry."""
    for use in result.uses:
        op = use.operation
        if isinstance(op, InsertSliceOp) and use.index == 2:
            yield op
        elif isinstance(op, ViewOp):
            yield from _collectors(op.results[0])


def _overwrites(state: Bufferizer, op: InsertSliceOp) -> bool:
    """Whether the buffer of x, not read later, is ours to write: donated, made in this block or carried by its loop."""
    root = view_root(op.x)
    if isinstance(root, BlockArgument):
        carried = isinstance(op.parent_op(), scf.ForOp | scf.WhileOp)
        ours = root.owner is op.parent and (carried or root in state.donated)
    else:
        made = isinstance(root, OpResult) and isinstance(root.op, (*PRODUCERS, InsertSliceOp, tensor.EmptyOp))
        ours = made and root.owner.parent is op.parent
    return ours and dead_before(op, root, ignoring=op)


def place_of(op: Operation) -> SSAValue | None:
    """The index of an entry as a scalar that is known to lie inside the axis, if it is one."""
    if not isinstance(op, SliceAccessOp) or not isinstance(op.index.owner, tensor.FromElementsOp):
        return None
    place = op.index.owner.operands[0]
    if isinstance(place.owner, arith.IndexCastOp):
        place = place.owner.input
    found = index_range(place)
    inside = found is not None and found[0] >= 0 and found[1] < static_shape(op.x)[0]
    return place if inside and isinstance(place.type, IndexType) else None


def indexes_known_place(use: Use) -> bool:
    """Whether a tensor is used as the index of an entry, and its scalar takes its place there."""
    return use.index == 1 and place_of(use.operation) is not None


def _place(state: Bufferizer, op: SliceAccessOp) -> SSAValue:
    """The index in the buffer's first axis: counted from the front, and cut to it where it may lie outside."""
    known = place_of(op)
    if known is not None:
        return state.values[known]

    def emit(new: Operation) -> SSAValue:
        return state.emit(new).results[0]

    size = index_constant(emit, static_shape(op.x)[0])
    zero, last = index_constant(emit, 0), index_constant(emit, static_shape(op.x)[0] - 1)
    given = emit(arith.IndexCastOp(emit(memref.LoadOp.get(state.values[op.index], [])), IndexType()))
    negative = emit(arith.CmpiOp(given, zero, "slt"))
    counted = emit(arith.SelectOp(negative, emit(arith.AddiOp(given, size)), given))
    return emit(arith.MinSIOp(emit(arith.MaxSIOp(counted, zero)), last))


def _entry(state: Bufferizer, buffer: SSAValue, place: SSAValue, hint: str | None) -> SSAValue:
    entry = state.emit(BufferSliceOp(buffer, place)).result
    entry.name_hint = valid_hint(hint)
    return entry


def _is_entry(value: SSAValue, buffer: SSAValue, place: SSAValue) -> bool:
    """Whether a buffer is, maybe under another shape, the entry of `buffer` at `place`."""
    while isinstance(value.owner, memref.ReinterpretCastOp):
        value = value.owner.source
    owner = value.owner
    return isinstance(owner, BufferSliceOp) and owner.source is buffer and owner.index is place
