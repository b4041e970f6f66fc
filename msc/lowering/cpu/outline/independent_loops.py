"""Loops of the bufferized entry function whose iterations are independent.

Each iteration writes only its own slice, at its index, of outer buffers, and none reads these buffers; all other
buffers that it writes are allocated inside.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from xdsl.dialects import func, memref, scf
from xdsl.ir import Operation, SSAValue

from msc.analysis.index_ranges import index_range
from msc.analysis.kernel_signature import KernelSignature
from msc.dialects.loop import BufferSliceOp
from msc.ir.typed import static_shape
from msc.lowering.cpu.buffer_types import root_buffer


@dataclass(frozen=True)
class BufferAccess:
    """A buffer that an operation in a loop reads or writes."""

    buffer: SSAValue
    is_written: bool


def accesses(op: Operation, kernels: Mapping[str, KernelSignature]) -> list[BufferAccess] | None:
    """What an operation touches, in the order of its operands; None for one that only computes, or may do anything."""
    match op:
        case memref.LoadOp():
            return [BufferAccess(op.memref, False)]
        case memref.CopyOp():
            return [BufferAccess(op.source, False), BufferAccess(op.destination, True)]
        case func.CallOp() if (signature := kernels.get(op.callee.string_value())) and not signature.sizes:
            return [BufferAccess(v, i in signature.written_range) for i, v in enumerate(op.arguments)]
        case _:
            return None


def trip_count(loop: scf.ForOp) -> int | None:
    """The iterations of a loop that counts from 0 in steps of 1 to a constant."""
    lower, upper, step = (index_range(value) for value in (loop.lb, loop.ub, loop.step))
    if lower != (0, 0) or step != (1, 1) or upper is None or upper[0] != upper[1]:
        return None
    return upper[0]


def is_independent(loop: scf.ForOp, kernels: Mapping[str, KernelSignature]) -> bool:
    """Whether the iterations of a loop may run in any order, and at the same time."""
    count = trip_count(loop)
    if count is None or loop.iter_args:
        return False
    outside = [a for a in _accesses_within(loop, kernels) if not _is_inside(root_buffer(a.buffer), loop)]
    written = {root_buffer(a.buffer) for a in outside if a.is_written}
    return all(
        a.is_written and _is_own_entry(a.buffer, loop, count) for a in outside if root_buffer(a.buffer) in written
    )


def _accesses_within(loop: scf.ForOp, kernels: Mapping[str, KernelSignature]) -> Iterator[BufferAccess]:
    for op in loop.body.walk():
        yield from accesses(op, kernels) or ()


def _is_inside(value: SSAValue, loop: scf.ForOp) -> bool:
    block = value.owner if not isinstance(value.owner, Operation) else value.owner.parent
    while block is not None and block is not loop.body.block:
        op = block.parent_op()
        block = None if op is None else op.parent
    return block is not None


def _is_own_entry(buffer: SSAValue, loop: scf.ForOp, count: int) -> bool:
    """Whether a buffer is a part of the entry, at the loop's number, of one with as many entries as iterations."""
    entry: BufferSliceOp | None = None
    while isinstance(buffer.owner, memref.ReinterpretCastOp | BufferSliceOp) and _is_inside(buffer, loop):
        if isinstance(buffer.owner, BufferSliceOp):
            entry = buffer.owner
        buffer = buffer.owner.source
    return entry is not None and entry.index is loop.body.block.args[0] and static_shape(entry.source)[0] == count
