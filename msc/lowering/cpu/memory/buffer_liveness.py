"""The lifetimes of the entry function's buffers: from the first to the last step that accesses them.

A step is an operation that reads or writes buffers, numbered in textual order. A loop accesses outer buffers in every
iteration, so they are live throughout the loop. A buffer allocated inside a loop lives within it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects import func, memref, scf
from xdsl.ir import Block, Operation, SSAValue

from msc.dialects.loop import BufferSliceOp
from msc.lowering.cpu.memory.arena import Interval

STEPS = (func.CallOp, memref.CopyOp, memref.LoadOp, memref.StoreOp)
"""Operations of the entry function that touch buffers."""


@dataclass(frozen=True)
class BufferLiveness:
    """The steps of a function, and the interval of each buffer that one of them touches."""

    steps: Sequence[Operation]
    intervals: Mapping[memref.AllocOp, Interval]

    @classmethod
    def of(cls, function: func.FuncOp) -> BufferLiveness:
        """Analyse a bufferized entry function."""
        steps: list[Operation] = [op for op in function.walk() if isinstance(op, STEPS)]
        numbers = {op: i for i, op in enumerate(steps)}
        allocations = [op for op in function.walk() if isinstance(op, memref.AllocOp)]
        found = {op: _interval(op, numbers) for op in allocations}
        return cls(steps, {op: live for op, live in found.items() if live is not None})


def _interval(allocation: memref.AllocOp, numbers: Mapping[Operation, int]) -> Interval | None:
    touched = [
        number
        for user in users_through_views(allocation.memref)
        for number in _steps_at(user, allocation.parent_block(), numbers)
    ]
    return Interval(min(touched), max(touched)) if touched else None


def users_through_views(buffer: SSAValue) -> Iterator[Operation]:
    """The operations that touch a buffer, itself or a view or entry of it."""
    for use in buffer.uses:
        if isinstance(use.operation, memref.ReinterpretCastOp | BufferSliceOp):
            yield from users_through_views(use.operation.result)
        else:
            yield use.operation


def _steps_at(user: Operation, home: Block | None, numbers: Mapping[Operation, int]) -> Iterator[int]:
    """The step of `user`, and all steps of the loops around it inside block `home`."""
    if user in numbers:
        yield numbers[user]
    for around in loops_around(user, home):
        yield from (numbers[op] for op in around.walk() if op in numbers)


def loops_around(op: Operation, home: Block | None) -> Iterator[Operation]:
    """The loops inside block `home` that contain `op`, innermost first."""
    parent = op.parent_op()
    while op.parent is not home and parent is not None:
        if isinstance(parent, scf.ForOp | scf.WhileOp):
            yield parent
        op, parent = parent, parent.parent_op()
