"""Where in UB the arrays of a task are: in buffers of their own, in that of an operand, or in that of an output."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from msc.lowering.ascend.builder import Buffer
from msc.lowering.ascend.vector_kernels.instructions import ArrayInUB
from msc.lowering.ascend.vector_kernels.task import Task, placed
from msc.poly.model import KernelModel
from msc.poly.scalar import reads
from msc.schedule.vector_unit.formulas import is_one_instruction
from msc.schedule.vector_unit.tiling import UB_DTYPES


@dataclass
class TaskBuffers:
    """The buffers through which a task's inputs come and its outputs go; two tasks at a time have one set each."""

    inputs: dict[int, Buffer] = field(default_factory=dict[int, Buffer])
    outputs: dict[int, Buffer] = field(default_factory=dict[int, Buffer])


class Homes:
    """Chooses the place of each result of a task, so that a task holds few arrays and many rows have room.

    In this order: the buffer that leaves, the place of an operand that nothing reads later, for what leaves that of an
    input that nothing reads any more, the buffer of an output that is written later, a buffer of its own.
    """

    def __init__(self, task: Task, buffers: TaskBuffers) -> None:
        self.task, self.buffers = task, buffers
        self._first, self._last = _lives(task.model)
        self._own: dict[int, Buffer] = {}
        self._reusable = set(buffers.inputs)
        self._lent: dict[int, int] = {}

    def own(self, array: int) -> None:
        """An array has a buffer of its own, which is free after the last statement that needs it."""
        self._own[array] = self.task.values[array].buffer
        self._reusable.add(array)

    def release(self, number: int) -> None:
        """Give back what nothing needs after a statement."""
        for array in [a for a in self._own if self._last.get(a, 0) <= number]:
            self.task.room.give(self._own.pop(array))
            if array in self.task.values:
                del self.task.values[array]

    def home(self, number: int) -> ArrayInUB:
        """The place of the result of a statement, which writes its array first."""
        target = self.task.model.statements[number].target
        dtype, layout = UB_DTYPES[self.task.model.arrays[target].dtype], self.task.layouts[target]
        leaving = self.buffers.outputs.get(target)
        if leaving is not None and leaving.dtype == dtype:
            return placed(leaving, layout)
        dying = self._dying(number)
        if dying is not None:
            if dying in self._own:
                self._own[target] = self._own.pop(dying)
            self._reusable.add(target)
            return self.task.values[dying]
        if (arrived := self._arrived(number, target, dtype)) is not None:
            return placed(arrived, layout)
        lender = self._lender(number, target, dtype)
        if lender is not None:
            self._lent[lender] = self._last[target]
            return placed(self.buffers.outputs[lender], layout)
        half = self.task.half.get(target, False)
        made = self.task.take(self.task.axes.arrays[target], dtype, f"a{target}", half)
        self._own[target] = made.buffer
        self._reusable.add(target)
        return made

    def _dying(self, number: int) -> int | None:
        """An operand whose place the result of one instruction may have: nothing reads it after this statement."""
        task, statement = self.task, self.task.model.statements[number]
        own = task.axes.arrays[statement.target]
        in_place = statement.combine is None and is_one_instruction(statement.body)
        if not in_place or own != task.axes.statements[number]:
            return None
        dtype = UB_DTYPES[task.model.arrays[statement.target].dtype]
        for read in reads(statement.body):
            array = read.operand
            ends = array in self._reusable and self._last[array] == number
            if ends and task.axes.arrays[array] == own and task.values[array].dtype == dtype:
                return array
        return None

    def _arrived(self, number: int, target: int, dtype: str) -> Buffer | None:
        """The buffer of an input with an output's type and axes, if it holds nothing that anybody needs."""
        arrays, task = self.task.model.arrays, self.task
        if not task.in_place or arrays[target].kind != "output":
            return None
        needed = {value.buffer for array, value in task.values.items() if self._last.get(array, -1) >= number}
        for array, buffer in self.buffers.inputs.items():
            alike = buffer.dtype == dtype and task.axes.arrays[array] == task.axes.arrays[target]
            if alike and buffer not in needed:
                return buffer
        return None

    def _lender(self, number: int, target: int, dtype: str) -> int | None:
        """An output that is written after the last use of an array, and whose buffer no other array has until then."""
        arrays = self.task.axes.arrays
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
