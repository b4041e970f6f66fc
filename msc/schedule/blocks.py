"""Loops over the blocks that kernels hand to each other: outermost in all of them, they become one (`fuse-blocks`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from xdsl.ir.affine import AffineDimExpr

from msc.analysis.kernel_model import output_positions
from msc.dialects.gk import KernelOp, blocks_of
from msc.poly.model import KernelModel
from msc.poly.plan import Member

Blocked: TypeAlias = tuple[int, int]
"""An array of a kernel's model, and how many of its axes, in front, number blocks."""


def blocked_arrays(kernel: KernelOp) -> tuple[Blocked, ...]:
    """What a kernel takes and gives block by block."""
    inputs = [(k, blocks_of(value)) for k, value in enumerate(kernel.inputs)]
    results = zip(output_positions(kernel), map(blocks_of, kernel.results), strict=True)
    return tuple((array, axes) for array, axes in (*inputs, *results) if axes)


def loops_over_blocks(model: KernelModel, band: Sequence[Member], blocked: Sequence[Blocked]) -> list[Member]:
    """The loops of the band that number the blocks, outermost first; empty where one of them is none of the band."""
    loops: list[Member] = []
    for axis in range(max((axes for _, axes in blocked), default=0)):
        arrays = [array for array, axes in blocked if axis < axes]
        found = [m for m in band if all(_counts(model, m, array, axis) for array in arrays)]
        loops += found[:1]
        if not found:
            return []
    return loops


def _counts(model: KernelModel, member: Member, array: int, axis: int) -> bool:
    """Whether a loop is all that the index along an axis of an array moves with, in every statement."""
    places = [
        (number, map_.results[axis])
        for number, statement in enumerate(model.statements)
        for accessed, map_ in statement.accesses()
        if accessed == array
    ]
    return all(isinstance(e, AffineDimExpr) and member.dims.get(number) == e.position for number, e in places)
