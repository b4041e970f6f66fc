"""Inputs of kernels whose layout in memory differs from that of the computation (`msc.analysis.layout_views`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import Block, Operation, Region, SSAValue

from msc.analysis.layout_views import INPUT_VIEWS
from msc.dialects.gk import KernelOp, KernelYieldOp
from msc.dialects.ms.movement import SliceOp, TransposeOp
from msc.dialects.ms.views import ReshapeOp
from msc.ir.typed import static_shape


def read_stored(
    body: Block, index: int, stored: SSAValue, perm: tuple[int, ...], padded: tuple[int, ...] | None = None
) -> None:
    """Let argument `index` have the type of `stored`; its uses see it transposed by `perm`.

    And merged to the old shape; where more is stored, to the shape `padded`, of which they see the beginning.
    """
    old = body.args[index]
    new = body.insert_arg(stored.type, index)
    new.name_hint = old.name_hint
    views: list[Operation] = [TransposeOp(new, perm=perm)]
    shape = static_shape(old)
    if static_shape(views[0].results[0]) != (padded or shape):
        views.append(ReshapeOp(views[0].results[0], shape=padded or shape))
    if padded not in (None, shape):
        views.append(SliceOp(views[-1].results[0], begin=(0,) * len(shape), end=shape))
    first = body.first_op
    assert first is not None
    body.insert_ops_before(views, first)
    old.replace_all_uses_with(views[-1].results[0])
    body.erase_arg(old)


def transposition_kernel(label: str, value: SSAValue, perm: tuple[int, ...]) -> KernelOp:
    """A kernel that only moves the elements of `value`."""
    return moving_kernel(label, value, lambda argument: [TransposeOp(argument, perm=perm)])


def moving_kernel(label: str, value: SSAValue, moves: Callable[[SSAValue], Sequence[Operation]]) -> KernelOp:
    """A kernel of operations that move the elements of `value`; the last gives its result."""
    body = Block(arg_types=[value.type])
    ops = moves(body.args[0])
    body.add_ops([*ops, KernelYieldOp(ops[-1].results[0])])
    return KernelOp(label, [value], [ops[-1].results[0].type], Region(body))


def movers_before(value: SSAValue) -> list[Operation]:
    """The kernels and views that make `value` by moving elements of what the first one reads, for nothing else."""
    movers: list[Operation] = []
    while value.uses.get_length() == 1:
        owner = value.owner
        if not (isinstance(owner, KernelOp) and only_moves(owner)) and not isinstance(owner, ReshapeOp):
            break
        movers = [owner, *movers]
        value = owner.operands[0]
    return movers


def moves_before(value: SSAValue) -> tuple[SSAValue, list[Operation]]:
    """What kernels and views that nothing else reads make `value` of by moving elements; their operations in order."""
    movers, moves = movers_before(value), list[Operation]()
    for op in movers:
        moves += list(op.body.block.ops)[:-1] if isinstance(op, KernelOp) else [op]
    return movers[0].operands[0] if movers else value, moves


def erase_unread(value: SSAValue) -> None:
    """Erase the operation of a value that nothing reads, and of what then nothing reads in front of it."""
    owner = value.owner
    if isinstance(owner, Operation) and not any(result.first_use for result in owner.results):
        operands = list(owner.operands)
        owner.detach()
        owner.erase()
        for operand in operands:
            erase_unread(operand)


def repeated(moves: Sequence[Operation], value: SSAValue) -> list[Operation]:
    """The same operations, each on the result of the one before it, the first on `value`."""
    made: list[Operation] = []
    for op in moves:
        made.append(op.clone({op.operands[0]: made[-1].results[0] if made else value}))
    return made


def only_moves(kernel: KernelOp) -> bool:
    """Whether a kernel moves the elements of one input by a row of views."""
    *inner, _ = kernel.body.block.ops
    if len(kernel.inputs) != 1 or not all(isinstance(op, INPUT_VIEWS) for op in inner):
        return False
    sources = [kernel.body.block.args[0], *(op.results[0] for op in inner)]
    return sources == [*(op.operands[0] for op in inner), *kernel.terminator.values]
