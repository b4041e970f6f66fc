"""Which unit of a core runs a `gk.kernel`: a list of units, asked in order, the scalar unit last.

A unit gets the kernel as the polyhedral model sees it, and the machine. Arguments of the `davinci.kernel` that it
writes are the kernel's inputs, then its outputs, row by row as they lie in global memory.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from math import prod
from typing import Generic, TypeVar

from xdsl.dialects.builtin import ArrayAttr, StringAttr

from msc.analysis.kernel_model import kernel_model, output_positions
from msc.dialects import davinci, gk
from msc.dialects.gk.attributes import GK_SCHEDULE, GK_SCHEDULE_REASONS
from msc.dialects.gk.schedule import ScheduleAttr
from msc.ir.locations import source_location
from msc.lowering.ascend.builder import KernelBuilder
from msc.poly.model import KernelModel
from msc.poly.schedule_tree.nodes import Tree
from msc.schedule.forms import KernelForm, Unlike
from msc.support.diagnostics import Diagnostic, MscError
from msc.targets.davinci import DavinciTarget
from msc.targets.davinci_isa import ELEMENTS, WORDS

_UNITS: Sequence[str] = (
    "msc.lowering.ascend.cube_kernels",
    "msc.lowering.ascend.vector_kernels.writer",
    "msc.lowering.ascend.copy_kernels.writer",
    "msc.lowering.ascend.scalar_loops",
)
"""Modules that have a `UNIT`: the first that writes a kernel is taken. The last one writes any."""


@dataclass(frozen=True)
class KernelRequest:
    """A kernel to write: `op` with its attributes, its `model`, the array numbers of its `outputs`, a `name`."""

    op: gk.KernelOp
    model: KernelModel
    outputs: tuple[int, ...]
    target: DavinciTarget
    name: str

    @property
    def inputs(self) -> tuple[int, ...]:
        """The array numbers of the inputs."""
        return tuple(i for i, array in enumerate(self.model.arrays) if array.kind == "input")

    @property
    def schedule(self) -> ScheduleAttr | None:
        """The schedule that the kernel carries: written by a person, by tuning or by the target's strategy."""
        return self.op.schedule

    def note(self, schedule: ScheduleAttr, reasons: Sequence[str]) -> None:
        """Write the schedule that was followed and its reasons on the kernel."""
        self.op.attributes[GK_SCHEDULE] = schedule
        self.op.attributes[GK_SCHEDULE_REASONS] = ArrayAttr([StringAttr(reason) for reason in reasons])

    def refused(self, unit: str, why: str, notes: Sequence[str] = ()) -> MscError:
        """The error of a schedule that a unit ("the vector unit") cannot follow."""
        message = f"kernel {self.op.label.data!r}: its schedule cannot run on {unit}: {why}"
        advice = "remove the attribute, and msc chooses a schedule"
        return MscError(Diagnostic("MSC0408", message, source_location(self.op), notes=tuple(notes), help=advice))

    @property
    def is_static(self) -> bool:
        """Whether every size is known, and cores have every element type that crosses global memory."""
        return self.is_static_but_for(())

    def is_static_but_for(self, indices: Collection[int]) -> bool:
        """The same where some arrays hold indices that the scalar unit loads."""
        known = {i: WORDS if i in indices else ELEMENTS for i in (*self.inputs, *self.outputs)}
        arrays = self.model.arrays
        return not self.model.sizes and all(
            arrays[i].dtype in types and prod(arrays[i].shape) for i, types in known.items()
        )

    def builder(self, kind: str, blocks: int) -> KernelBuilder:
        """A builder whose arguments are the inputs and the outputs. The kernel must be static."""
        arrays = [self.model.arrays[i] for i in (*self.inputs, *self.outputs)]
        arguments = [
            ("i32", 2 * prod(array.shape)) if array.dtype == "i64" else (ELEMENTS[array.dtype], prod(array.shape))
            for array in arrays
        ]
        return KernelBuilder(self.name, self.target, kind, blocks, arguments)


class NotForUnit(Exception):
    """Something that a unit does not compute; another one takes the kernel."""


Form = TypeVar("Form", bound=KernelForm)


@dataclass(frozen=True)
class CoreUnit(Generic[Form]):
    """A unit of a core, with a `name` for people ("the vector unit").

    `form` gives a kernel as the unit runs it, None for a kernel that it does not take. `written` gives the kernel that
    a tree of this form says; it raises Unlike for a tree of another form, NotForUnit, and MSC1021 or MSC1023 where a
    memory or the flags do not suffice.
    """

    name: str
    form: Callable[[KernelRequest], Form | None]
    written: Callable[[KernelRequest, Form, Tree], davinci.DavinciKernelOp]

    def kernel(self, request: KernelRequest) -> davinci.DavinciKernelOp | None:
        """The kernel by the schedule that it carries, else by the first of the form's trees that has room.

        None where the unit does not compute the kernel, or no tree has room. Raises MSC0408 for a schedule that the
        form cannot follow.
        """
        form = self.form(request)
        if form is None:
            return None
        if request.schedule is not None:
            return self._by_hand(request, form, request.schedule)
        for tree in form.trees():
            try:
                made = self.written(request, form, tree)
            except NotForUnit:
                return None
            except MscError:  # no room, or too few flags
                continue
            request.note(ScheduleAttr(tree), form.reasons(tree))
            return made
        return None

    def _by_hand(self, request: KernelRequest, form: Form, schedule: ScheduleAttr) -> davinci.DavinciKernelOp:
        try:
            made = self.written(request, form, schedule.data)
        except Unlike as problem:
            raise request.refused(self.name, str(problem), problem.nearest) from problem
        except NotForUnit as problem:
            raise request.refused(self.name, f"it has no {problem}") from problem
        except MscError as problem:
            raise request.refused(self.name, problem.diagnostics[0].message) from problem
        request.note(schedule, form.reasons(schedule.data))
        return made


def units() -> Iterator[CoreUnit[KernelForm]]:
    """The units of a core, in the order in which they are asked."""
    return (import_module(module).UNIT for module in _UNITS)


def write_kernel(op: gk.KernelOp, target: DavinciTarget, name: str) -> davinci.DavinciKernelOp:
    """The DaVinci kernel of a kernel: of the first unit that takes it.

    A schedule that the kernel carries is followed by the first unit that can; a kernel without one gets it. Raises
    MSC0408 where no unit can follow it, with the reason of the first unit that takes such kernels.
    """
    request = request_of(op, target, name)
    refused: MscError | None = None
    for unit in units():
        try:
            made = unit.kernel(request)
        except MscError as problem:
            if request.schedule is None or any(each.code != "MSC0408" for each in problem.diagnostics):
                raise
            refused = refused or problem
            continue
        if made is not None:
            return made
    assert refused is not None
    raise refused


def request_of(op: gk.KernelOp, target: DavinciTarget, name: str) -> KernelRequest:
    """A kernel to write for a machine."""
    return KernelRequest(op, kernel_model(op), output_positions(op), target, name)
