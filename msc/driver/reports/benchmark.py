"""Timing a compiled model: whole calls, and its kernels one by one."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace

import numpy as np
from numpy.typing import NDArray

from msc.driver.artifacts.libraries import library_of
from msc.driver.artifacts.model_on_call import made_for
from msc.driver.models.model_inputs import Value, choose_inputs
from msc.driver.options import CompileOptions
from msc.driver.reports.kernel_rates import KernelRate, KernelTime, rate_json, rates
from msc.runtime.machine import Roofline, measured_machine
from msc.runtime.timing import MOST_CALLS, Timing, measure, summary
from msc.support.diagnostics import Diagnostic, MscError
from msc.support.wording import counted


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

    def to_json(self) -> dict[str, object]:
        """Seconds, everywhere; kernels also with their rates where the model tells what they do."""
        kernels = [{**vars(k), **rate_json(rate)} for k, rate in zip(self.kernels, self.rates, strict=True)]
        machine = None if self.machine is None else asdict(self.machine)
        clock = {} if self.simulated is None else {"simulated": self.simulated}
        return {"first": self.first, **self.timing.to_json(), "kernels": kernels, "machine": machine, **clock}


def benchmark(
    model: str, options: CompileOptions, workload: Workload, *, by_kernel: bool = False, use_cache: bool = True
) -> Measurement:
    """Measure a model on one input. Kernels are timed in a second build, which has clocks between them.

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
    kernels, machine = kernel_times(model, options, workload, use_cache=use_cache), _machine(options.team)
    from msc.driver.reports.kernel_calls import kernel_work

    achieved = rates(kernels, kernel_work(model, options), machine)
    return Measurement(timing, first.median, kernels, achieved, machine)


def _simulated(model: str, options: CompileOptions, workload: Workload, use_cache: bool) -> Measurement:
    profiled = replace(options, profile=True)
    (options, _), given = made_for(profiled, workload.given, lambda o: (o, library_of(model, o, use_cache=use_cache)))
    once = replace(workload, given=given, warm_up=0, seconds=0.0)
    kernels = kernel_times(model, options, once, use_cache=use_cache, least=1)
    total = sum(kernel.seconds for kernel in kernels)
    nothing = tuple(None for _ in kernels)
    return Measurement(summary([total]), total, kernels, nothing, simulated=options.target)


def _machine(threads: int) -> Roofline | None:
    """What the machine can do; None where that cannot be measured, which is no reason not to time a model."""
    with suppress(MscError):
        return measured_machine(threads)
    return None


def kernel_times(
    model: str, options: CompileOptions, workload: Workload, *, use_cache: bool = True, least: int = 10
) -> tuple[KernelTime, ...]:
    """Median seconds of every kernel call, in order, in a build with clocks between them. Raises as `benchmark`."""
    compiled = library_of(model, replace(options, profile=True), use_cache=use_cache).load()
    inputs = choose_inputs(compiled.signature.inputs, workload.given, workload.seed)
    names = compiled.calls
    if not names:
        message = f"'{model}' was built without clocks between its kernels"
        raise MscError(Diagnostic("MSC0008", message, help="give the model, or build the .so with --profile"))
    samples: list[NDArray[np.float64]] = []

    def call() -> None:
        samples.append(np.zeros(len(names), np.float64))
        compiled.profile(inputs, samples[-1])

    measure(call, warm_up=workload.warm_up, seconds=workload.seconds, least=least)
    medians = np.median(np.array(samples[workload.warm_up :]), axis=0)
    total = float(medians.sum()) or 1.0
    return tuple(KernelTime(name, float(s), float(s) / total) for name, s in zip(names, medians, strict=True))


def measurement_text(measurement: Measurement) -> str:
    """For people: microseconds."""
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
        columns = f"{'GFLOP/s':>10}{'of peak':>9}{'GB/s':>9}{'of memory':>11}"
        lines.append(f"\n{'kernel':<44}{'us':>12}{'share':>8}{columns}")
        lines += map(_kernel_line, measurement.kernels, measurement.rates)
        rest = max(0.0, timing.median - sum(kernel.seconds for kernel in measurement.kernels))
        lines.append(f"{'(the call from Python, and between kernels)':<44}{rest * 1e6:>12.2f}")
    return "\n".join(lines)


def _kernel_line(kernel: KernelTime, rate: KernelRate | None) -> str:
    line = f"{kernel.name[:43]:<44}{kernel.seconds * 1e6:>12.2f}{kernel.share:>8.1%}"
    if rate is None:
        return line
    peak, bandwidth = (f"{s:.1%}" if s is not None else "" for s in (rate.share_of_peak, rate.share_of_bandwidth))
    return f"{line}{rate.gflops_per_second:>10.2f}{peak:>9}{rate.gbytes_per_second:>9.2f}{bandwidth:>11}"


def _us(seconds: float) -> str:
    return f"{seconds * 1e6:,.2f} us"
