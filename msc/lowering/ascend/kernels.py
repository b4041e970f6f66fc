"""Who writes the DaVinci kernel of a `gk.kernel`: a list of writers, asked in order, the scalar unit last.

A writer is a function `(request) -> davinci.kernel or None`; None says "not mine". It gets the kernel as the polyhedral
model sees it, and the machine. Arguments of what it writes are the kernel's inputs, then its outputs, row by row as
they lie in global memory. It leaves flags out: `insert-sync` puts them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from importlib import import_module
from math import prod
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, StringAttr

from msc.analysis.kernel_model import kernel_model, output_positions
from msc.dialects import davinci, gk
from msc.dialects.davinci.attributes import DAVINCI_REASONS, DAVINCI_SCHEDULE
from msc.dialects.gk.schedule import ScheduleAttr
from msc.ir.locations import source_location
from msc.lowering.ascend.builder import KernelBuilder
from msc.poly.model import KernelModel
from msc.poly.schedule_tree.nodes import Tree
from msc.schedule.forms import KernelForm, Unlike
from msc.support.diagnostics import Diagnostic, MscError
from msc.targets.davinci import DavinciTarget
from msc.targets.davinci_isa import ELEMENTS, WORDS

WRITERS: Sequence[str] = (
    "msc.lowering.ascend.cube_kernels:write",
    "msc.lowering.ascend.vector_kernels.writer:write",
    "msc.lowering.ascend.copy_kernels.writer:write",
    "msc.lowering.ascend.scalar_loops:write",
)
"""The writers as "package.module:function": the first that writes a kernel is taken. The last one writes any."""


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

    def note(self, schedule: Tree | ScheduleAttr | None, reasons: Sequence[str] = ()) -> None:
        """Write the schedule that was followed and its reasons on the kernel."""
        if schedule is not None:
            self.op.attributes[DAVINCI_SCHEDULE] = ScheduleAttr(schedule) if isinstance(schedule, Tree) else schedule
        if reasons:
            self.op.attributes[DAVINCI_REASONS] = ArrayAttr([StringAttr(reason) for reason in reasons])

    def forget(self) -> None:
        """Remove the schedule and the reasons of a writer that did not write the kernel."""
        self.op.attributes.pop(DAVINCI_SCHEDULE, None)
        self.op.attributes.pop(DAVINCI_REASONS, None)

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


Writer = Callable[[KernelRequest], davinci.DavinciKernelOp | None]


class NotForUnit(Exception):
    """Something that a unit does not compute; another one takes the kernel."""


TreeWriter = Callable[[Tree], davinci.DavinciKernelOp]
"""Writes the kernel, with its flags, that a tree says.

Raises Unlike for a tree of another form, NotForUnit, and MSC1021 or MSC1023 where a memory or the flags do not suffice.
"""


def written_by_tree(
    request: KernelRequest, form: KernelForm, write: TreeWriter, unit: str
) -> davinci.DavinciKernelOp | None:
    """The kernel by the schedule that it carries, else by the first of the form's trees that has room.

    None where the unit does not compute the kernel, or no tree has room. Raises MSC0408 for a schedule that the form
    cannot follow.
    """
    if request.schedule is not None:
        return _by_hand(request, form, write, unit, request.schedule)
    for tree in form.trees():
        try:
            made = write(tree)
        except NotForUnit:
            return None
        except MscError:  # no room, or too few flags
            continue
        request.note(tree, form.reasons(tree))
        return made
    return None


def _by_hand(
    request: KernelRequest, form: KernelForm, write: TreeWriter, unit: str, schedule: ScheduleAttr
) -> davinci.DavinciKernelOp:
    try:
        made = write(schedule.data)
    except Unlike as problem:
        raise request.refused(unit, str(problem), problem.nearest) from problem
    except NotForUnit as problem:
        raise request.refused(unit, f"it has no {problem}") from problem
    except MscError as problem:
        raise request.refused(unit, problem.diagnostics[0].message) from problem
    request.note(schedule, form.reasons(schedule.data))
    return made


def write_kernel(op: gk.KernelOp, target: DavinciTarget, name: str) -> davinci.DavinciKernelOp:
    """The DaVinci kernel of a kernel: of the first writer that takes it.

    A schedule that the kernel carries is followed by the first writer that can. Raises MSC0408 where none can, with the
    reason of the first writer that takes such kernels.
    """
    request = KernelRequest(op, kernel_model(op), output_positions(op), target, name)
    refused: MscError | None = None
    for place in WRITERS:
        request.forget()
        module, _, function = place.partition(":")
        writer = cast(Writer, getattr(import_module(module), function))
        try:
            made = writer(request)
        except MscError as problem:
            if request.schedule is None or any(each.code != "MSC0408" for each in problem.diagnostics):
                raise
            refused = refused or problem
            continue
        if made is not None:
            return made
    assert refused is not None
    raise refused
