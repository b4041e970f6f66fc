"""Results that may be computed in their destination: an output argument, or the buffer of a region's result."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from xdsl.dialects import scf, tensor
from xdsl.ir import Block, Operation, OpResult, SSAValue

from msc.dialects.gk import CallKernelOp, KernelOp
from msc.dialects.ms.base import ViewOp
from msc.dialects.ms.slices import ExtractSliceOp, InsertSliceOp

PRODUCERS = (KernelOp, CallKernelOp, scf.IfOp, scf.ForOp, scf.WhileOp, tensor.FromElementsOp)
"""Operations that write their results into buffers they are given."""


MayOverwrite = Callable[[SSAValue, SSAValue], bool]
"""Whether a kernel may write a result over the tensor that it reads."""


def storage_root(value: SSAValue) -> SSAValue:
    """The tensor whose buffer holds a value: through views, entries, and what an entry was written into."""
    while isinstance(value.owner, ViewOp | ExtractSliceOp | InsertSliceOp):
        value = value.owner.operands[0]
    return value


def view_root(value: SSAValue) -> SSAValue:
    """The tensor that a chain of views shows."""
    while isinstance(value.owner, ViewOp):
        value = value.owner.operands[0]
    return value


def direct_destinations(
    block: Block,
    given: Iterable[tuple[SSAValue, SSAValue]],
    occupied: Mapping[SSAValue, Sequence[SSAValue]] | None = None,
    may_overwrite: MayOverwrite | None = None,
) -> dict[SSAValue, SSAValue]:
    """Results of operations of `block` to the buffer each may be written into.

    `given` pairs the values that leave the block with the buffers they must reach. A value goes directly into the first
    of them only; what is no result of this block (an argument, a parameter) has to be copied. `occupied` gives, for a
    buffer, the tensors that it holds when the block begins: the producer must come after their last use, or be it and
    overwrite them as `may_overwrite` says.
    """
    chosen: dict[SSAValue, SSAValue] = {}
    for value, buffer in given:
        root = view_root(value)
        if root in chosen or not is_produced_in(block, root):
            continue
        if all(_is_free(root, held, may_overwrite) for held in (occupied or {}).get(buffer, ())):
            chosen[root] = buffer
    return chosen


def is_produced_in(block: Block | None, root: SSAValue) -> bool:
    """Whether a value is the result of an operation of `block` that writes where it is told."""
    return isinstance(root, OpResult) and isinstance(root.op, PRODUCERS) and root.op.parent is block


def _is_free(root: SSAValue, held: SSAValue, may_overwrite: MayOverwrite | None) -> bool:
    """Whether the producer of `root` may write over what a buffer holds."""
    reads = may_overwrite is not None and may_overwrite(root, held)
    return dead_before(root.owner, held, ignoring=root.owner if reads and isinstance(root.owner, Operation) else None)


def dead_before(producer: Operation | Block, held: SSAValue, ignoring: Operation | None = None) -> bool:
    """Whether nothing reads a tensor from `producer` on, `ignoring` and what that makes of it excepted."""
    block = producer.parent if isinstance(producer, Operation) else None
    if block is None or not isinstance(producer, Operation):
        return False
    users = [block.find_ancestor_op_in_block(user) for user in uses_through_views(held, ignoring)]
    return all(user is not None and user is not producer and user.is_before_in_block(producer) for user in users)


def uses_through_views(value: SSAValue, ignoring: Operation | None = None) -> Iterator[Operation]:
    """The operations that read a tensor: itself, a view or entry of it, or what an entry was written into.

    Neither `ignoring` nor what reads its result is among them.
    """
    for use in value.uses:
        op = use.operation
        if op is ignoring:
            continue
        if isinstance(op, ViewOp | ExtractSliceOp) or (isinstance(op, InsertSliceOp) and use.index == 0):
            yield from uses_through_views(op.results[0], ignoring)
        if not isinstance(op, ViewOp):
            yield op
