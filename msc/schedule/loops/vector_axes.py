"""Which axes of a kernel can carry vectors, and which are worth it."""

from __future__ import annotations

from collections.abc import Sequence

from msc.cost.access import strides, vectorisable
from msc.poly.model import ArrayKind, KernelModel
from msc.poly.schedule_tree.nodes import Axis
from msc.schedule.loops.sharing import Group

OUTSIDE: Sequence[ArrayKind] = ("input", "output")


def is_worth_vectors(model: KernelModel, axis: Axis, *kinds: ArrayKind) -> bool:
    """Whether an axis can carry vectors, and neighbours along it are neighbours in an array of some kinds."""
    return can_carry(model, axis) and any(
        stride == 1 and model.arrays[array].kind in kinds
        for s, d in axis.dims.items()
        for (array, _), stride in zip(
            model.statements[s].accesses(), strides(model, model.statements[s], d), strict=True
        )
    )


def can_carry(model: KernelModel, axis: Axis) -> bool:
    """Whether statements can run as vectors along an axis."""
    return axis.extent > 1 and all(vectorisable(model.statements[s], d) for s, d in axis.dims.items())


def may_be_summed(model: KernelModel, group: Group, axis: Axis) -> bool:
    """Whether columns that fill no vector may run along an inner loop: that of one statement alone, of known extent."""
    return len(group.statements) == 1 and can_carry(model, axis) and not has_bound(model, axis)


def has_bound(model: KernelModel, axis: Axis) -> bool:
    """Whether calls decide how far an axis is valid."""
    return any(model.statements[s].bound(d) is not None for s, d in axis.dims.items())
