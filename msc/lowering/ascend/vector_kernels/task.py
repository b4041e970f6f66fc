"""The task of a vector kernel: its arrays in UB, what computes on them, and where they go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msc.lowering.ascend.builder import Buffer, Expr, KernelBuilder
from msc.lowering.ascend.vector_kernels.instructions import ArrayInUB, Instructions
from msc.lowering.ascend.vector_kernels.integers import Integers
from msc.lowering.ascend.vector_kernels.room import Room
from msc.poly.model import KernelModel
from msc.poly.scalar import Apply, Read
from msc.schedule.vector_unit.axes import Axes
from msc.schedule.vector_unit.joined import ScaleAndShift, Scaled, joined_statements
from msc.schedule.vector_unit.tiling import Layout, Tiling, layout_of, unit_of


class Task:
    """The state of a task; with `in_place` results leave from the buffer of the input that they replace.

    With `chunked` a reduction adds to what its array holds, whoever has written that.
    """

    def __init__(
        self,
        builder: KernelBuilder,
        model: KernelModel,
        axes: Axes,
        tiling: Tiling,
        arguments: Mapping[int, Buffer],
        *,
        in_place: bool = False,
        chunked: bool = False,
    ) -> None:
        self.b, self.model, self.axes, self.tiling, self.arguments = builder, model, axes, tiling, arguments
        self.in_place, self.chunked = in_place, chunked
        self.unit, self.integers = unit_of(model), Integers(model)
        self.room = Room(builder)
        self.code = Instructions(builder)
        self.code.capacities = {a: tiling.capacity(axes, a) for a in range(len(axes.extents))}
        self.code.sizes = dict(self.code.capacities)
        self.layouts = [layout_of(axes, tiling, of, self.unit) for of in axes.arrays]
        self.values: dict[int, ArrayInUB] = {}
        self.joined = joined_statements(model, axes)
        self.half = halves(model, self.joined)
        self.share: tuple[Expr, Expr | None] = 0, None
        """The first element of the split axis that the core has, and how many, where cores share elements."""

    def take(self, of: Sequence[int], dtype: str, name: str = "t", half: bool | None = None) -> ArrayInUB:
        """A value over some axes, of nothing yet."""
        layout = layout_of(self.axes, self.tiling, of, self.unit)
        return placed(self.room.take(dtype, layout.elements, name, fill=self.is_padded(layout), half=half), layout)

    def is_padded(self, layout: Layout) -> bool:
        """Whether something may read elements that nothing writes."""
        return not layout.axes or self.code.capacities[layout.axes[-1]] % self.unit != 0 or layout.elements <= 2048


def placed(buffer: Buffer, layout: Layout) -> ArrayInUB:
    """A buffer as an array with a layout."""
    return ArrayInUB(buffer, layout.axes, layout.strides)


def halves(model: KernelModel, joined: Mapping[int, ScaleAndShift | Scaled]) -> dict[int, bool]:
    """The half of a row of banks for each array, so that the two sources of an instruction are in different ones.

    A result is where its first operand is, in whose place it may come.
    """
    found: dict[int, bool] = {}
    for number, statement in enumerate(model.statements):
        if isinstance(before := joined.get(number - 1), ScaleAndShift):
            found.setdefault(before.shift.operand, not found.get(before.factor.operand, True))
        body = statement.body
        operands = [a.operand for a in body.args if isinstance(a, Read)] if isinstance(body, Apply) else []
        if len(operands) == 2 and operands[0] != operands[1]:
            first, second = operands
            if first in found:
                found.setdefault(second, not found[first])
            found.setdefault(first, not found.get(second, True))
            found.setdefault(second, not found[first])
        if operands and statement.combine is None:
            found.setdefault(statement.target, found.get(operands[0], False))
    return found
