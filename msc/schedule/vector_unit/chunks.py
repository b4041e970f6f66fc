"""Reductions over more than UB holds: a core takes chunks of the reduced axis one after the other.

The statements that have the axis run over each chunk, and their reductions add to what earlier chunks left. Others
set the starts before, and use the results after.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from msc.poly.model import KernelModel
from msc.poly.scalar import reads
from msc.schedule.vector_unit.axes import Axes
from msc.schedule.vector_unit.tiling import Tiling
from msc.targets.davinci import DavinciTarget

_LARGEST = 1 << 14
"""Elements of the largest chunk of an axis that is tried: 64 KB of f32."""


@dataclass(frozen=True)
class Chunked:
    """The statements before, over and after the chunks of an axis."""

    axis: int
    before: tuple[int, ...]
    over: tuple[int, ...]
    after: tuple[int, ...]


def chunked(model: KernelModel, outputs: tuple[int, ...], axes: Axes) -> Chunked | None:
    """The longest axis over which a kernel reduces in one pass; None where it has none."""
    found = sorted({a for reduced in axes.reduced for a in reduced}, key=lambda axis: -axes.extents[axis])
    return next((parts for axis in found if (parts := chunked_along(model, outputs, axes, axis)) is not None), None)


def chunked_along(model: KernelModel, outputs: tuple[int, ...], axes: Axes, axis: int) -> Chunked | None:
    """One pass: nothing over the axis needs a whole sum, and what is not over it comes before or after."""
    over = [k for k, own in enumerate(axes.statements) if axis in own]
    if not over or any(axis in axes.arrays[output] for output in outputs):
        return None
    before, after = list[int](), list[int]()
    for number, statement in enumerate(model.statements):
        if number in over:
            continue
        first = number < over[0] or not any(True for _ in reads(statement.body))
        (before if first and statement.combine is None else after).append(number)
    sums = {model.statements[k].target for k in (*over, *after) if axis not in axes.arrays[model.statements[k].target]}
    needed = {read.operand for k in (*before, *over) for read in reads(model.statements[k].body)}
    late = any(number < over[-1] and model.statements[number].target in needed for number in after)
    return None if needed & sums or late else Chunked(axis, tuple(before), tuple(over), tuple(after))


def chunk_tilings(axes: Axes, parts: Chunked, target: DavinciTarget) -> Iterator[Tiling]:
    """Tasks are the elements of the axes outside the reduced one; each takes chunks, the largest that fit."""
    size = _LARGEST
    while size >= 1:
        if size <= axes.extents[parts.axis]:
            yield chunk_tiling(axes, parts, target, size)
        size //= 2


def chunk_tiling(axes: Axes, parts: Chunked, target: DavinciTarget, size: int) -> Tiling:
    """The tiling by chunks of a size."""
    outer = tuple(range(parts.axis)) if all(set(range(parts.axis)) <= set(own) for own in axes.statements) else ()
    if outer and any(set(outer) & reduced for reduced in axes.reduced):
        outer = ()
    tasks = axes.count(outer)
    share = -(-tasks // target.cores.vector)
    return Tiling(outer, parts.axis, size, -(-tasks // share), equal=True, chunked=True)
