"""The schedules of a kernel on DaVinci cores, timed on the simulator."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from msc.codegen.davinci.simulate import simulate_kernel
from msc.dialects.davinci.kernels import scalar_cycles
from msc.dialects.gk import KernelOp, ScheduleAttr
from msc.dialects.gk.attributes import GK_SCHEDULE
from msc.lowering.ascend.insert_sync import synchronise
from msc.lowering.ascend.kernels import request_of, units, write_kernel
from msc.lowering.ascend.target import davinci_of
from msc.poly.schedule_tree.nodes import Tree
from msc.support.diagnostics import MscError

_TRIED = 24
"""Schedules of a kernel that are tried: the best predicted ones."""


class TunedKernel:
    """A kernel whose schedules are written as queue instructions, one after the other, and run."""

    def __init__(self, kernel: KernelOp) -> None:
        self._kernel = kernel
        self._own: Tree | None = None

    def alternatives(self) -> Iterator[Tree]:
        """The schedules that tilings give, but for the one that it has."""
        request = request_of(self._kernel, davinci_of(self._kernel), "tuned")
        form = next(form for unit in units() if (form := unit.form(request)) is not None)
        return (tree for tree in islice(form.neighbours(), _TRIED) if tree != self._own)

    def microseconds(self, tree: Tree | None) -> float | None:
        """One run with a schedule, None for msc's own; None where it does not run, or the scalar unit runs it."""
        if tree is not None:
            self._kernel.attributes[GK_SCHEDULE] = ScheduleAttr(tree)
        try:
            written = write_kernel(self._kernel, davinci_of(self._kernel), "tuned")
            if tree is None and self._kernel.schedule is not None:
                self._own = self._kernel.schedule.data
            if scalar_cycles(written) is not None:
                return None
            synchronise(written)
            return simulate_kernel(written).task_us
        except MscError:
            return None
        finally:
            self._kernel.attributes.pop(GK_SCHEDULE, None)
