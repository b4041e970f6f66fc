"""Where in UB the arrays of a task are: in buffers of their own, in that of an operand, or in that of an output."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from msc.lowering.ascend.builder import Buffer
from msc.lowering.ascend.vector_kernels.formulas import is_one_instruction
from msc.lowering.ascend.vector_kernels.instructions import ArrayInUB
from msc.lowering.ascend.vector_kernels.joined import ScaleAndShift, Scaled
from msc.lowering.ascend.vector_kernels.tiling import UB_DTYPES, Layout
from msc.poly.model import KernelModel
from msc.poly.scalar import Apply, Read, reads

if TYPE_CHECKING:
    from msc.lowering.ascend.vector_kernels.tile import TaskWriter


@dataclass
class TaskBuffers:
    """The buffers through which a task's inputs come and its outputs go; two tasks at a time have one set each."""

    inputs: dict[int, Buffer] = field(default_factory=dict[int, Buffer])
    outputs: dict[int, Buffer] = field(default_factory=dict[int, Buffer])


def placed(buffer: Buffer, layout: Layout) -> ArrayInUB:
    """A buffer as an array with a layout."""
    return ArrayInUB(buffer, layout.axes, layout.strides)


class Homes:
    """Chooses the place of each result of a task, so that a task holds few arrays and many rows have room.

    In this order: the buffer that leaves, the place of an operand that nothing reads later, for what leaves that of an
    input that nothing reads any more, the buffer of an output that is written later, a buffer of its own.
    """

    def __init__(self, tile: TaskWriter, buffers: TaskBuffers) -> None:
        self.tile, self.buffers = tile, buffers
        self._first, self._last = _lives(tile.model)
        self._own: dict[int, Buffer] = {}
        self._reusable = set(buffers.inputs)
        self._lent: dict[int, int] = {}

    def own(self, array: int) -> None:
        """An array has a buffer of its own, which is free after the last statement that needs it."""
        self._own[array] = self.tile.values[array].buffer
        self._reusable.add(array)

    def release(self, number: int) -> None:
        """Give back what nothing needs after a statement."""
        for array in [a for a in self._own if self._last.get(a, 0) <= number]:
            self.tile.room.give(self._own.pop(array))
            if array in self.tile.values:
                del self.tile.values[array]

    def home(self, number: int) -> ArrayInUB:
        """The place of the result of a statement, which writes its array first."""
        target = self.tile.model.statements[number].target
        dtype, layout = UB_DTYPES[self.tile.model.arrays[target].dtype], self.tile.layouts[target]
        leaving = self.buffers.outputs.get(target)
        if leaving is not None and leaving.dtype == dtype:
            return placed(leaving, layout)
        dying = self._dying(number)
        if dying is not None:
            if dying in self._own:
                self._own[target] = self._own.pop(dying)
            self._reusable.add(target)
            return self.tile.values[dying]
        if (arrived := self._arrived(number, target, dtype)) is not None:
            return placed(arrived, layout)
        lender = self._lender(number, target, dtype)
        if lender is not None:
            self._lent[lender] = self._last[target]
            return placed(self.buffers.outputs[lender], layout)
        half = self.tile.half.get(target, False)
        made = self.tile.take(self.tile.axes.arrays[target], dtype, f"a{target}", half)
        self._own[target] = made.buffer
        self._reusable.add(target)
        return made

    def _dying(self, number: int) -> int | None:
        """An operand whose place the result of one instruction may have: nothing reads it after this statement."""
        tile, statement = self.tile, self.tile.model.statements[number]
        own = tile.axes.arrays[statement.target]
        in_place = statement.combine is None and is_one_instruction(statement.body)
        if not in_place or own != tile.axes.statements[number]:
            return None
        dtype = UB_DTYPES[tile.model.arrays[statement.target].dtype]
        for read in reads(statement.body):
            array = read.operand
            ends = array in self._reusable and self._last[array] == number
            if ends and tile.axes.arrays[array] == own and tile.values[array].dtype == dtype:
                return array
        return None

    def _arrived(self, number: int, target: int, dtype: str) -> Buffer | None:
        """The buffer of an input with an output's type and axes, if it holds nothing that anybody needs."""
        arrays, tile = self.tile.model.arrays, self.tile
        if not tile.in_place or arrays[target].kind != "output":
            return None
        needed = {value.buffer for array, value in tile.values.items() if self._last.get(array, -1) >= number}
        for array, buffer in self.buffers.inputs.items():
            alike = buffer.dtype == dtype and tile.axes.arrays[array] == tile.axes.arrays[target]
            if alike and buffer not in needed:
                return buffer
        return None

    def _lender(self, number: int, target: int, dtype: str) -> int | None:
        """An output that is written after the last use of an array, and whose buffer no other array has until then."""
        arrays = self.tile.axes.arrays
        for output, buffer in self.buffers.outputs.items():
            free = self._first[output] > self._last[target] and self._lent.get(output, -1) < number
            if free and arrays[output] == arrays[target] and buffer.dtype == dtype:
                return output
        return None


def _lives(model: KernelModel) -> tuple[Mapping[int, int], Mapping[int, int]]:
    """The first statement that writes each array, and the last one that needs it: outputs are needed to the end."""
    first, last = dict[int, int](), dict[int, int]()
    for number, statement in enumerate(model.statements):
        first.setdefault(statement.target, number)
        for array in (statement.target, *(read.operand for read in reads(statement.body))):
            last[array] = number if model.arrays[array].kind != "output" else len(model.statements)
    return first, last


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
