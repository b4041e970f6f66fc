"""Which results may be computed directly where they end up: an output argument, or the buffer of a region's result."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from xdsl.dialects import scf, tensor
from xdsl.ir import Block, Operation, OpResult, SSAValue

from msc.dialects.gk import KernelOp
from msc.dialects.ms.base import ViewOp

_PRODUCERS = (KernelOp, scf.IfOp, scf.ForOp, scf.WhileOp, tensor.FromElementsOp)
"""Operations that write their results into buffers they are given."""


def view_root(value: SSAValue) -> SSAValue:
    """The tensor that a chain of views shows."""
    while isinstance(value.owner, ViewOp):
        value = value.owner.operands[0]
    return value


def direct_destinations(
    block: Block,
    given: Iterable[tuple[SSAValue, SSAValue]],
    occupied: Mapping[SSAValue, Sequence[SSAValue]] | None = None,
) -> dict[SSAValue, SSAValue]:
    """Results of operations of `block` to the buffer each may be written into.

    `given` pairs the values that leave the block with the buffers they must reach. A value goes directly into the first
    of them only; what is no result of this block (an argument, a parameter) has to be copied. `occupied` gives, for a
    buffer, the tensors that it holds when the block begins: the producer must come after their last use.
    """
    chosen: dict[SSAValue, SSAValue] = {}
    for value, buffer in given:
        root = view_root(value)
        if root in chosen or not _is_produced_in(block, root):
            continue
        if all(_dead_before(root.owner, held) for held in (occupied or {}).get(buffer, ())):
            chosen[root] = buffer
    return chosen


def _is_produced_in(block: Block, root: SSAValue) -> bool:
    return isinstance(root, OpResult) and isinstance(root.op, _PRODUCERS) and root.op.parent is block


def _dead_before(producer: Operation | Block, held: SSAValue) -> bool:
    block = producer.parent if isinstance(producer, Operation) else None
    if block is None or not isinstance(producer, Operation):
        return False
    users = [block.find_ancestor_op_in_block(user) for user in uses_through_views(held)]
    return all(user is not None and user is not producer and user.is_before_in_block(producer) for user in users)


def uses_through_views(value: SSAValue) -> Iterator[Operation]:
    """The operations that read a tensor, itself or a view of it."""
    for use in value.uses:
        if isinstance(use.operation, ViewOp):
            yield from uses_through_views(use.operation.results[0])
        else:
            yield use.operation
