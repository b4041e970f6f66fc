"""Pass `apply-tuning`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr
from xdsl.passes import ModulePass

from msc import __version__
from msc.analysis.kernels import kernels_in
from msc.analysis.properties import KERNELS, UNSCHEDULED
from msc.analysis.target import target_of
from msc.dialects import gk
from msc.dialects.gk.attributes import GK_SCHEDULE, GK_SCHEDULE_REASONS
from msc.ir.contracts import Contract
from msc.schedule.tuning.tuned_schedules import TunedSchedule, TuningFile, kernel_key, read_tuning, target_text
from msc.support.diagnostics import Diagnostic, raise_any
from msc.support.wording import counted
from msc.targets.machine import Machine

_ADVICE = "tune again, or delete the entry"


@dataclass(frozen=True)
class ApplyTuning(ModulePass):
    """Give kernels the schedules of a tuning file, which are for the target of the module.

    Takes `gk.kernel`s of static shapes. Gives those that the file names an attribute `gk.schedule`, which
    `schedule-kernels` proves legal and keeps. Refuses entries of other targets, thread counts and versions (MSC0410)
    and of kernels that the module does not have (MSC0409), all of them at once. Without a file it does nothing.
    """

    name = "apply-tuning"
    contract = Contract(requires=(KERNELS,), breaks=(UNSCHEDULED,))
    file: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if not self.file:
            return
        tuning, target = read_tuning(Path(self.file)), target_of(op)
        raise_any(_foreign(tuning, target.machine, target.threads))
        keyed = [(kernel_key(kernel, target.machine, target.threads), kernel) for kernel in kernels_in(op)]
        raise_any(_stale(tuning.entries, {key for key, _ in keyed}))
        entries = {entry.key: entry for entry in tuning.entries}
        for key, kernel in keyed:
            if key in entries:
                kernel.attributes[GK_SCHEDULE] = gk.ScheduleAttr(entries[key].tree)
                kernel.attributes[GK_SCHEDULE_REASONS] = ArrayAttr([StringAttr(_reason(entries[key]))])


def _reason(entry: TunedSchedule) -> str:
    return f"found by msc tune: {entry.before_us:.2f} us became {entry.after_us:.2f} us"


def _foreign(tuning: TuningFile, target: Machine, threads: int) -> Iterator[Diagnostic]:
    if tuning.version != __version__:
        message = f"the schedules were found by msc {tuning.version}, this is {__version__}"
        yield Diagnostic("MSC0410", message, help="tune again")
    wanted = target_text(target)
    for entry in tuning.entries:
        if entry.target != wanted:
            notes = (f"it is for   {entry.target}", f"this is for {wanted}")
            yield Diagnostic("MSC0410", f"{_name(entry)} is for another target", notes=notes, help=_ADVICE)
        elif entry.threads != threads:
            message = f"{_name(entry)} is for {counted(entry.threads, 'thread')}, this is for {threads}"
            yield Diagnostic("MSC0410", message, help=_ADVICE)


def _stale(entries: Iterable[TunedSchedule], keys: set[str]) -> Iterator[Diagnostic]:
    for entry in entries:
        if entry.key not in keys:
            yield Diagnostic("MSC0409", f"{_name(entry)} matches no kernel of this model", help=_ADVICE)


def _name(entry: TunedSchedule) -> str:
    return f"tuning entry '{entry.label[:60]}' ({entry.key[:12]})"
