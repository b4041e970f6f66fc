"""Timing a compiled model: whole calls, and its kernels one by one."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from itertools import islice
from math import ceil
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp

from msc.analysis.bytes import traffic
from msc.analysis.flops import flops
from msc.analysis.kernel_signature import calls_of
from msc.analysis.kernels import kernels_in
from msc.analysis.repetition import times_run
from msc.dialects.gk import KernelOp
from msc.dialects.ms.base import MsOp
from msc.driver.artifacts.libraries import library_of
from msc.driver.artifacts.model_on_call import made_for
from msc.driver.compile import Step, compile_model
from msc.driver.models.entry import entry_function
from msc.driver.models.model_inputs import Value, choose_inputs
from msc.driver.models.reading_models import stage_of_model
from msc.driver.options import CompileOptions
from msc.driver.reports.kernel_rates import KernelRate, KernelTime, KernelWork, rate_json, rates
from msc.ir.locations import source_location
from msc.runtime.machine import Roofline, measured_machine
from msc.support.diagnostics import Diagnostic, MscError, printable
from msc.support.notebooks import html_table
from msc.support.wording import counted

UNITS = {
    **dict.fromkeys(("first", "median", "minimum", "mean", "p10", "p90", "p99", "seconds"), "s"),
    **{
        "share": "of all kernels",
        "flops": "1",
        "bytes": "B",
        "gflops_per_second": "1e9/s",
        "gbytes_per_second": "1e9 B/s",
    },
    **{"share_of_peak": "of the machine's", "share_of_bandwidth": "of the machine's"},
}
"""What the numbers of the JSON are in."""
_BEATEN_AFTER = 3600.0
"""Seconds after which peaks are measured anew if a kernel is faster than they say."""
TRACED = 20
"""Calls of which the times of each kernel are kept, for a trace."""
_SHOWN = 3
"""Operations that a row of the table names."""


@dataclass(frozen=True)
class ProfiledCall:
    """One call of the build with clocks: when it began and ended, on one clock, and the seconds of each kernel call."""

    start: float
    end: float
    seconds: tuple[float, ...]


@dataclass(frozen=True)
class Workload:
    """How long to measure, after how many calls that do not count, on which inputs."""

    given: Mapping[str, Value]
    seed: int = 0
    warm_up: int = 10
    seconds: float = 1.0


@dataclass(frozen=True)
class Measurement:
    """A model's times: of whole calls, the first of them, and of its kernels if they were asked for."""

    timing: Timing
    first: float
    kernels: tuple[KernelTime, ...] = ()
    rates: tuple[KernelRate | None, ...] = ()
    machine: Roofline | None = None
    simulated: str | None = None
    """The machine on whose clock the times are, where it is simulated."""
    calls: tuple[ProfiledCall, ...] = ()
    """The calls that the times of kernels are of."""
    measured_at: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))

    def _repr_html_(self) -> str:
        return kernels_html(self)

    def to_json(self) -> dict[str, object]:
        """Seconds, everywhere; kernels also with their rates where the model tells what they do; `units` says so."""
        kernels = [{**vars(k), **rate_json(rate)} for k, rate in zip(self.kernels, self.rates, strict=True)]
        machine = None if self.machine is None else asdict(self.machine)
        clock = {} if self.simulated is None else {"simulated": self.simulated}
        about = {"measured_at": self.measured_at, "units": UNITS, **clock}
        return {"first": self.first, **self.timing.to_json(), "kernels": kernels, "machine": machine, **about}


def kernels_html(measurement: Measurement) -> str:
    """The table of kernels for notebooks."""
    rows = [
        (
            kernel.name,
            f"{kernel.seconds * 1e6:.2f}",
            f"{kernel.share:.1%}",
            "" if rate is None else f"{rate.gflops_per_second:.2f}",
            "" if rate is None else ", ".join(rate.origins),
        )
        for kernel, rate in zip(measurement.kernels, measurement.rates, strict=True)
    ]
    heads = ("kernel", "us", "share", "GFLOP/s", "computes")
    return html_table(f"{_us(measurement.timing.median)} a call", heads, rows)


def benchmark(
    model: str,
    options: CompileOptions,
    workload: Workload,
    *,
    by_kernel: bool = False,
    use_cache: bool = True,
    peaks_again: bool = False,
) -> Measurement:
    """Measure a model on one input. Kernels are timed in a second build, which has clocks between them.

    The machine's peaks come from the cache, unless they are wanted `again`, or a kernel is faster than they say.

    Of a simulated machine one call says all: its times are those of the kernels, one after the other.

    Raises what compiling raises, and MSC0601 to MSC0604.
    """
    if options.backend.simulated:
        return _simulated(model, options, workload, use_cache)
    (options, compiled), given = made_for(
        options, workload.given, lambda o: (o, library_of(model, o, use_cache=use_cache).load())
    )
    workload = replace(workload, given=given)
    inputs = compiled.check(choose_inputs(compiled.signature.inputs, given, workload.seed))
    outputs = compiled.new_outputs(inputs)
    call = compiled.bind(inputs, outputs)
    first = measure(call, warm_up=0, seconds=0, least=1)
    timing = measure(call, warm_up=workload.warm_up, seconds=workload.seconds)
    if not by_kernel:
        return Measurement(timing, first.median)

    calls = list[ProfiledCall]()
    kernels = kernel_times(model, options, workload, use_cache=use_cache, calls=calls)
    works = kernel_work(model, options)
    machine = _machine(options.team, 0.0 if peaks_again else None)
    achieved = rates(kernels, works, machine)
    if not peaks_again and any(rate is not None and rate.is_above_peak for rate in achieved):
        machine = _machine(options.team, _BEATEN_AFTER)
        achieved = rates(kernels, works, machine)
    return Measurement(timing, first.median, kernels, achieved, machine, calls=tuple(calls))


def _simulated(model: str, options: CompileOptions, workload: Workload, use_cache: bool) -> Measurement:
    profiled = replace(options, profile=True)
    (options, _), given = made_for(profiled, workload.given, lambda o: (o, library_of(model, o, use_cache=use_cache)))
    once = replace(workload, given=given, warm_up=0, seconds=0.0)
    kernels = kernel_times(model, options, once, use_cache=use_cache, least=1)
    total = sum(kernel.seconds for kernel in kernels)
    nothing = tuple(None for _ in kernels)
    return Measurement(summary([total]), total, kernels, nothing, simulated=options.target)


def _machine(threads: int, older_than: float | None) -> Roofline | None:
    """What the machine can do; None where that cannot be measured, which is no reason not to time a model."""
    with suppress(MscError):
        return measured_machine(threads, older_than=older_than)
    return None


def kernel_times(
    model: str,
    options: CompileOptions,
    workload: Workload,
    *,
    use_cache: bool = True,
    least: int = 10,
    calls: list[ProfiledCall] | None = None,
) -> tuple[KernelTime, ...]:
    """Median seconds of every kernel call, in order, in a build with clocks between them. Raises as `benchmark`.

    The last calls that were measured are appended to `calls`.
    """
    compiled = library_of(model, replace(options, profile=True), use_cache=use_cache).load()
    inputs = choose_inputs(compiled.signature.inputs, workload.given, workload.seed)
    names = compiled.calls
    if not names:
        message = f"'{model}' was built without clocks between its kernels"
        raise MscError(Diagnostic("MSC0008", message, help="give the model, or build the .so with --profile"))
    samples: list[NDArray[np.float64]] = []
    spans: list[tuple[float, float]] = []

    def call() -> None:
        samples.append(np.zeros(len(names), np.float64))
        start = time.perf_counter()
        compiled.profile(inputs, samples[-1])
        spans.append((start, time.perf_counter()))

    measure(call, warm_up=workload.warm_up, seconds=workload.seconds, least=least)
    medians = np.median(np.array(samples[workload.warm_up :]), axis=0)
    total = float(medians.sum()) or 1.0
    if calls is not None:
        last = zip(spans[-TRACED:], samples[-TRACED:], strict=True)
        calls += [ProfiledCall(start, end, tuple(seconds.tolist())) for (start, end), seconds in last]
    return tuple(KernelTime(name, float(s), float(s) / total) for name, s in zip(names, medians, strict=True))


def measurement_text(measurement: Measurement, sort: str = "call") -> str:
    """For people: microseconds; kernels in an order of `ORDERS`."""
    timing = measurement.timing
    if measurement.simulated is not None:
        count = counted(len(measurement.kernels), "kernel")
        lines = [f"{_us(timing.median)} on {measurement.simulated}, simulated: {count}, one after the other"]
        lines.append(f"\n{'kernel':<44}{'us':>12}{'share':>8}")
        lines += [_kernel_line(kernel, None) for kernel in measurement.kernels]
        return "\n".join(lines)
    parts = [
        f"{name} {_us(timing.percentile(p))}" for name, p in (("median", 50), ("p10", 10), ("p90", 90), ("p99", 99))
    ]
    lines = [f"{', '.join(parts)}, minimum {_us(timing.minimum)} over {counted(len(timing.samples), 'call')}"]
    lines.append(f"{1 / timing.median:,.0f} calls a second; the first call took {_us(measurement.first)}")
    if len(timing.samples) == MOST_CALLS:
        lines.append(f"measured {MOST_CALLS:,} calls, which is the most, and ended before the time was over")
    if measurement.kernels:
        columns = f"{'GFLOP/s':>10}{'of peak':>9}{'GB/s':>9}{'of memory':>11}  computes"
        lines.append(f"\n{'kernel':<44}{'us':>12}{'share':>8}{columns}")
        pairs = zip(measurement.kernels, measurement.rates, strict=True)
        lines += [_kernel_line(*pair) for pair in sorted(pairs, key=lambda pair: _place(sort, *pair))]
        lines.append(_total_line(measurement))
        rest = max(0.0, timing.median - sum(kernel.seconds for kernel in measurement.kernels))
        lines.append(f"{'(the call from Python, and between kernels)':<44}{rest * 1e6:>12.2f}")
        lines += above_peaks(measurement.rates)
    return "\n".join(lines)


ORDERS = ("call", "time", "name", "flops", "peak")
"""Orders of kernels: as they are called, slowest first, by name, fastest first, farthest from the machine's limits."""


def _place(order: str, kernel: KernelTime, rate: KernelRate | None) -> tuple[float, str]:
    """What kernels are sorted by: calls stay in their order."""
    if order == "name":
        return 0.0, kernel.name
    known = {"time": -kernel.seconds}
    if rate is not None:
        known |= {"flops": -rate.gflops_per_second, "peak": rate.nearest_limit}
    return known.get(order, 0.0 if order == "call" else math.inf), ""


def _total_line(measurement: Measurement) -> str:
    seconds = sum(kernel.seconds for kernel in measurement.kernels)
    line = f"{'all ' + counted(len(measurement.kernels), 'kernel'):<44}{seconds * 1e6:>12.2f}{1:>8.1%}"
    known = [rate for rate in measurement.rates if rate is not None]
    if len(known) < len(measurement.rates) or not seconds:
        return line
    work = KernelWork(sum(rate.flops for rate in known), sum(rate.bytes for rate in known))
    total = KernelRate.of(work, seconds, measurement.machine)
    peak = "" if total.share_of_peak is None else f"{total.share_of_peak:.1%}"
    return f"{line}{total.gflops_per_second:>10.2f}{peak:>9}{total.gbytes_per_second:>9.2f}"


def above_peaks(rates: Sequence[KernelRate | None]) -> list[str]:
    """Why shares of the machine's peaks are above 100 %, where some are."""
    known = [rate for rate in rates if rate is not None]
    lines = list[str]()
    if any(rate.share_of_bandwidth is not None and rate.share_of_bandwidth > 1 for rate in known):
        lines.append("above 100 % of memory: kernels before left operands in nearer caches")
    if any(rate.share_of_peak is not None and rate.share_of_peak > 1 for rate in known):
        lines.append(
            "above 100 % of peak: that is of multiply-adds in f32, measured within the hour; narrower types are faster,"
            " and so is a core beside which fewer others work"
        )
    return lines


def _kernel_line(kernel: KernelTime, rate: KernelRate | None) -> str:
    line = f"{kernel.name[:43]:<44}{kernel.seconds * 1e6:>12.2f}{kernel.share:>8.1%}"
    if rate is None:
        return line
    peak, bandwidth = (f"{s:.1%}" if s is not None else "" for s in (rate.share_of_peak, rate.share_of_bandwidth))
    rates = f"{rate.gflops_per_second:>10.2f}{peak:>9}{rate.gbytes_per_second:>9.2f}{bandwidth:>11}"
    more = f", and {len(rate.origins) - _SHOWN} more" if len(rate.origins) > _SHOWN else ""
    return f"{line}{rates}  {printable(', '.join(rate.origins[:_SHOWN]))}{more}".rstrip()


def _us(seconds: float) -> str:
    return f"{seconds * 1e6:,.2f} us"


# Which kernels each call of the entry function runs: one, or all that were in a loop that became a function.
def kernels_by_call(model: str, options: CompileOptions) -> Sequence[Sequence[KernelWork]]:
    """The work of the kernels of each call, in order."""
    found: list[KernelWork] = []

    def collect(step: Step, module: ModuleOp) -> None:
        if step.name == "convert-gk-to-loop":
            found.extend(KernelWork(flops(k), traffic(k), times_run(k), _origins(k)) for k in kernels_in(module))

    module = compile_model(model, options, after_step=collect).module
    counts = {op.sym_name.data: calls_of(op) for op in module.ops if isinstance(op, func.FuncOp)}
    kernels = iter(found)
    calls = (op.callee.string_value() for op in entry_function(module).walk() if isinstance(op, func.CallOp))
    return [list(islice(kernels, counts[name])) for name in calls]


def kernel_work(model: str, options: CompileOptions) -> tuple[KernelWork, ...]:
    """The work of every call of a kernel's function in order; none for a model past the stage of kernels.

    A function that was made of a loop does the work of all runs of the kernels in it.
    """
    if model.endswith(".so") or not stage_of_model(model, options.backend.table, options.start).holds_tensors:
        return ()
    return tuple(map(_together, kernels_by_call(model, options)))


def _together(works: Sequence[KernelWork]) -> KernelWork:
    """One kernel's work, or all runs of several as one."""
    if len(works) == 1:
        return works[0]
    runs = None if any(work.runs is None for work in works) else 1
    total, nbytes = sum(w.flops * (w.runs or 0) for w in works), sum(w.bytes * (w.runs or 0) for w in works)
    return KernelWork(total, nbytes, runs, tuple(dict.fromkeys(each for work in works for each in work.origins)))


_NODE = re.compile(r".*\((\w+(?: '.*')?)\)")


def _origins(kernel: KernelOp) -> tuple[str, ...]:
    """What the model calls the operations of a kernel; file and line where they have no names."""
    places = (source_location(op) for op in kernel.body.block.ops if isinstance(op, MsOp))
    found = dict.fromkeys(place for place in places if place is not None)
    named = {place: _NODE.fullmatch(place.file) for place in found}
    return tuple(dict.fromkeys(f"{Path(p.file).name}:{p.line}" if (n := named[p]) is None else n[1] for p in found))


# How long a call takes: repeated, summarised by order statistics, which outliers do not move.
@dataclass(frozen=True)
class Timing:
    """Seconds a call, sorted."""

    samples: tuple[float, ...]

    @property
    def minimum(self) -> float:
        return self.samples[0]

    @property
    def median(self) -> float:
        return self.percentile(50)

    def percentile(self, percent: float) -> float:
        """The nearest-rank percentile."""
        return self.samples[max(0, ceil(percent / 100 * len(self.samples)) - 1)]

    def to_json(self) -> dict[str, float]:
        """Seconds by name, and the number of samples."""
        names = {"p10": 10, "median": 50, "p90": 90, "p99": 99}
        percentiles = {name: self.percentile(percent) for name, percent in names.items()}
        return {"samples": len(self.samples), "minimum": self.minimum, **percentiles}


MOST_CALLS = 100_000
"""Of one measurement: more say no more."""


def measure(
    call: Callable[[], object], *, warm_up: int = 3, seconds: float = 1.0, least: int = 10, most: int = MOST_CALLS
) -> Timing:
    """Call again and again for `seconds`, at least `least` and at most `most` times; the warm-up does not count."""
    for _ in range(warm_up):
        call()
    samples = list[float]()
    end = time.perf_counter() + seconds
    while len(samples) < least or (len(samples) < most and time.perf_counter() < end):
        start = time.perf_counter()
        call()
        samples.append(time.perf_counter() - start)
    return summary(samples)


def summary(samples: Sequence[float]) -> Timing:
    """The timing of measured seconds, at least one."""
    return Timing(tuple(sorted(samples)))
