"""Inputs of kernels that lie in memory otherwise than the kernel computes with them (see `msc.analysis.layout_views`).

Nputs of kernels that lie in memory otherwise than the kernel computes with them (see `msc.analysis.layout_views`).
"""

from __future__ import annotations

from xdsl.ir import Block, Operation, Region, SSAValue

from msc.dialects.gk import KernelOp, YieldOp
from msc.dialects.ms.movement import TransposeOp
from msc.dialects.ms.views import ReshapeOp
from msc.ir.typed import static_shape


def read_stored(body: Block, index: int, stored: SSAValue, perm: tuple[int, ...]) -> None:
    """Let argument `index` have the type of `stored`; its uses see it transposed by `perm`.

    And merged to the old shape.
    """
    old = body.args[index]
    new = body.insert_arg(stored.type, index)
    new.name_hint = old.name_hint
    views: list[Operation] = [TransposeOp(new, perm=perm)]
    if static_shape(views[0].results[0]) != static_shape(old):
        views.append(ReshapeOp(views[0].results[0], shape=static_shape(old)))
    first = body.first_op
    assert first is not None
    body.insert_ops_before(views, first)
    old.replace_all_uses_with(views[-1].results[0])
    body.erase_arg(old)


def transposition_kernel(label: str, value: SSAValue, perm: tuple[int, ...]) -> KernelOp:
    """A kernel that only moves the elements of `value`."""
    body = Block(arg_types=[value.type])
    op = TransposeOp(body.args[0], perm=perm)
    body.add_ops([op, YieldOp(op.results[0])])
    return KernelOp(label, [value], [op.results[0].type], Region(body))
