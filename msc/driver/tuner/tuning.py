"""`msc tune`: faster schedules by measurement, starting from the model's own pick.

The search goes from each kernel's schedule to the neighbour that is fastest, by a margin, and on from there, as long as
there is time; the next step is always for the kernel that has most of the model's time left to win. At the end what
was found is measured once more against where the search began.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from xdsl.dialects.builtin import SymbolRefAttr

from msc.analysis.kernel_model import kernel_dependences, kernel_model
from msc.analysis.kernels import kernels_in
from msc.analysis.target import target_of
from msc.backends.registry import find_backend
from msc.cost.prediction import predict
from msc.dialects.gk import KernelOp
from msc.dialects.gk.attributes import GK_FUNCTION
from msc.driver.compile import Compilation, compile_model
from msc.driver.interruptions import Ended
from msc.driver.models.interpretation import input_tensors
from msc.driver.models.model_inputs import choose_inputs
from msc.driver.models.target import with_target
from msc.driver.options import CompileOptions
from msc.driver.reports.benchmark import Workload, kernel_times
from msc.driver.reports.kernel_records import KernelRecord, record_kernels
from msc.driver.tuner.simulated import tune_simulated
from msc.driver.tuner.variants import Subject, VariantTime, time_each
from msc.poly.schedule_tree.nodes import Tree
from msc.poly.schedule_tree.text import to_lines
from msc.schedule.schedule_kernels import ScheduleKernels, schedule_of
from msc.schedule.tuning.neighbours import Neighbourhood
from msc.schedule.tuning.tuned_schedules import TunedSchedule, TuningFile, kernel_key, target_text
from msc.support.wording import counted
from msc.targets.machine import Machine

MARGIN = 0.02
"""A schedule is kept if it is faster by this share: less is noise."""

_BATCH = 8
"""Schedules in one library, besides the one to beat."""
_MEASURING_SECONDS = 0.1
_CONFIRMING_SECONDS = 0.3
_LEAST_SHARE = 0.005
"""Kernels with a smaller share of the model's time are left as they are."""

Report = Callable[[str], None]


@dataclass
class KernelSearch:
    """The search for one kernel: where it began, the best schedule so far, and what is left to try."""

    key: str
    label: str
    subject: Subject
    neighbourhood: Neighbourhood
    start: Tree
    seconds: float
    best: Tree = field(init=False)
    measured: tuple[float, float] = (0.0, 0.0)
    steps: int = 0
    cost: float = 1.0
    tries: list[Try] = field(default_factory=list["Try"])
    _tried: set[tuple[str, ...]] = field(default_factory=set[tuple[str, ...]])
    _left: Iterator[Tree] = field(init=False)
    finished: bool = False

    def __post_init__(self) -> None:
        self._move(self.start)

    @property
    def priority(self) -> float:
        """Seconds of the model that the kernel takes, less for each step that went before."""
        return self.seconds / (1 + self.steps)

    def step(self) -> int:
        """Try the next few neighbours, go to the fastest if it wins; how many were tried."""
        began = time.perf_counter()
        batch = list(islice(self._left, _BATCH))
        self.steps += 1
        if not batch:
            self.finished = True
            return 0
        self._tried |= {tuple(to_lines(schedule)) for schedule in batch}
        before, *times = time_each(self.subject, (self.best, *batch), _MEASURING_SECONDS)
        self.tries += [Try.of(t, self.best, schedule) for t, schedule in zip(times, batch, strict=True)]
        right = [(t, schedule) for t, schedule in zip(times, batch, strict=True) if t is not None and t.agrees]
        time_, winner = min(right, key=lambda pair: pair[0].ratio, default=(before, self.best))
        if before is not None and time_ is not None and time_.ratio <= 1 - MARGIN:
            self.measured = (self.measured[0] or before.microseconds, time_.microseconds)
            self.seconds *= time_.ratio
            self._move(winner)
        self.cost = time.perf_counter() - began
        return len(batch)

    def confirmed(self) -> tuple[VariantTime, VariantTime] | None:
        """Times of the first and of the best schedule, if there is a better one; not if it is wrong."""
        if self.best == self.start:
            return None
        before, after = time_each(self.subject, (self.start, self.best), _CONFIRMING_SECONDS)
        if before is None or after is None or not after.agrees:
            return None
        return before, after

    def _move(self, schedule: Tree) -> None:
        self.best = schedule
        self._tried.add(tuple(to_lines(schedule)))
        fresh = self.neighbourhood.of(schedule)
        self._left = (p for p in fresh if tuple(to_lines(p)) not in self._tried)


@dataclass(frozen=True)
class Try:
    """A schedule that was measured: its time as a multiple of that of the best one before it, and where it differs.

    None is the time of one that was not built or whose results were wrong.
    """

    ratio: float | None
    difference: str

    @staticmethod
    def of(time: VariantTime | None, before: Tree, schedule: Tree) -> Try:
        """The try of a schedule next to `before`."""
        known = set(to_lines(before))
        other = [line.strip() for line in to_lines(schedule) if line not in known]
        ratio = None if time is None or not time.agrees else time.ratio
        return Try(ratio, "; ".join(other[:_LINES]) + ("; ..." if len(other) > _LINES else ""))


_LINES = 3
"""Lines of a schedule that a row of the table shows."""
_ROWS = 3
"""Schedules of a kernel that the table shows, the fastest."""


def tried_table(searches: Sequence[KernelSearch]) -> list[str]:
    """What was tried, kernel by kernel: how many schedules, and the times of the fastest against the best before."""
    rows = [f"{'kernel':<32}{'tried':>7}{'not right':>11}  {'time':>6}  lines that differ"]
    for search in searches:
        right = sorted((t for t in search.tries if t.ratio is not None), key=lambda t: t.ratio or 0.0)[:_ROWS]
        counts = f"{search.label[:31]:<32}{len(search.tries):>7}{sum(t.ratio is None for t in search.tries):>11}"
        rows += [f"{counts if k == 0 else '':<50}  {t.ratio:>5.2f}x  {t.difference}" for k, t in enumerate(right)]
        rows += [] if right else [counts]
    return rows


@dataclass(frozen=True)
class Search:
    """The schedules that won, and the signal that ended the search early, if one did."""

    found: TuningFile
    ended_by: Ended | None = None


def tune(model: str, options: CompileOptions, workload: Workload, budget: float, report: Report) -> Search:
    """Search for `budget` seconds, after what reading the model and timing it once takes.

    A signal ends the search, not what it found so far, which then is not measured once more.

    Raises what compiling raises, MSC0006 for a model past the stage of kernels, MSC0601 to MSC0604 for inputs.
    """
    plain = replace(options, tuned=None)
    if find_backend(options.target).simulated:
        return Search(tune_simulated(model, plain, budget, report))
    started = searches(model, plain, workload)
    report(f"{counted(len(started), 'kernel')} to tune")
    try:
        tried = _spend(started, budget, report)
        found = [entry for search in started if (entry := _entry(search, report)) is not None]
    except Ended as ended:
        won = [_tuned(search, *search.measured) for search in started if search.best != search.start]
        return Search(TuningFile(tuple(won)), ended)
    for line in tried_table(started):
        report(line)
    report(f"{counted(tried, 'schedule')} tried, {counted(len(found), 'kernel')} faster")
    return Search(TuningFile(tuple(found)))


def _spend(searches: Sequence[KernelSearch], budget: float, report: Report) -> int:
    """Step after step where most time is left, until the budget is."""
    tried, end = 0, time.perf_counter() + 0.9 * budget
    while active := [s for s in searches if not s.finished and time.perf_counter() + 0.5 * s.cost < end]:
        search = max(active, key=lambda s: s.priority)
        before = search.best
        count = search.step()
        tried += count
        if search.best != before:
            report(f"{search.label}: {_us(search.seconds)} of the model's time after {search.steps} steps")
    return tried


def _entry(search: KernelSearch, report: Report) -> TunedSchedule | None:
    times = search.confirmed()
    if times is None:
        return None
    before, after = (round(t.microseconds, 3) for t in times)
    kept = times[1].ratio <= 1 - MARGIN
    report(f"{search.label}: {before:.2f} us became {after:.2f} us{'' if kept else ', which is no gain'}")
    return _tuned(search, before, after) if kept else None


def _tuned(search: KernelSearch, before: float, after: float) -> TunedSchedule:
    around, lines = search.neighbourhood, tuple(to_lines(search.best))
    target = target_text(around.target)
    return TunedSchedule(search.label, search.key, target, around.threads, round(before, 3), round(after, 3), lines)


def searches(model: str, options: CompileOptions, workload: Workload) -> list[KernelSearch]:
    """One search a distinct kernel that has a share of the model's time, longest first. Raises as `tune`."""
    compilation = compile_model(model, options, "gk")
    options = with_target(options, compilation.module)
    kernels = kernels_in(compilation.module)
    asked = target_of(compilation.module)
    target = asked.machine
    keys = [kernel_key(kernel, target, asked.threads) for kernel in kernels]
    for kernel, key in zip(kernels, keys, strict=True):
        kernel.attributes[GK_FUNCTION] = SymbolRefAttr(key)
    ScheduleKernels().apply(compilation.model.context, compilation.module)
    records = _records(compilation, workload)
    seconds = _seconds_by_key(model, options, workload, keys, kernels, target)
    chosen = dict(zip(keys, kernels, strict=True))
    total = sum(seconds.values())
    longest = sorted((key for key in chosen if key in records), key=lambda key: -seconds[key])
    return [
        _search(key, chosen[key], Subject(chosen[key], records[key], options), target, seconds[key])
        for key in longest
        if seconds[key] >= _LEAST_SHARE * total
    ]


def _search(key: str, kernel: KernelOp, subject: Subject, target: Machine, seconds: float) -> KernelSearch:
    kernel_of_subject = kernel_model(kernel)
    neighbourhood = Neighbourhood(kernel_of_subject, kernel_dependences(kernel), target, target_of(kernel).threads)
    return KernelSearch(key, kernel.label.data, subject, neighbourhood, schedule_of(kernel), seconds)


def _records(compilation: Compilation, workload: Workload) -> dict[str, KernelRecord]:
    """Inputs and right outputs of every kernel outside branches, by key, from one interpreted run."""
    inputs = choose_inputs(input_tensors(compilation.module), workload.given, workload.seed)
    records = record_kernels(compilation.module, inputs, compilation.model.weights())
    return {record.function: record for record in records}


def _seconds_by_key(
    model: str,
    options: CompileOptions,
    workload: Workload,
    keys: Sequence[str],
    kernels: Sequence[KernelOp],
    target: Machine,
) -> dict[str, float]:
    """Seconds of the model in each distinct kernel: measured; in branches, where calls do not match, predicted."""
    times = [t.seconds for t in kernel_times(model, options, workload) if t.name != "copy"]
    if len(times) != len(keys):
        cycles = [predict(kernel_model(k), schedule_of(k), target, target_of(k).threads).cycles for k in kernels]
        times = [c * 1e-9 for c in cycles]
    totals = dict.fromkeys(keys, 0.0)
    for key, seconds in zip(keys, times, strict=True):
        totals[key] += seconds
    return totals


def _us(seconds: float) -> str:
    return f"{seconds * 1e6:.2f} us"
