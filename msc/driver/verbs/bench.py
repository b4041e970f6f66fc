"""`msc bench`: how long a model takes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import click

from msc.driver.options import CompileOptions
from msc.driver.reports.benchmark import Measurement, ProfiledCall
from msc.driver.verbs.completion import files
from msc.driver.verbs.model_options import with_compile_options
from msc.driver.verbs.verb import COUNT, NUMBER, Verb, say
from msc.support.plain_files import opened


@click.command(name="bench", cls=Verb)
@click.argument("model", shell_complete=files)
@click.option("--input", "inputs", multiple=True, metavar="NAME=VALUE", help="@x.npy, or a literal like 2xf32=1,2.")
@click.option(
    "--random", "seed", type=COUNT, default=0, show_default=True, metavar="SEED", help="For all other inputs."
)
@click.option("--seconds", type=NUMBER, default=1.0, show_default=True, help="How long to measure.")
@click.option(
    "--warm-up", type=COUNT, default=10, show_default=True, metavar="N", help="Calls before that, which do not count."
)
@click.option("--kernels", is_flag=True, help="Time every kernel as well, in a build with clocks between them.")
@click.option(
    "--sort",
    type=click.Choice(["call", "time", "name", "flops", "peak"]),
    default="call",
    help="Order of the kernels: slowest first, by name, by GFLOP/s, or farthest from the machine's limits.",
)
@click.option("--trace", metavar="FILE.json", help="Write calls with their kernels there, for Perfetto.")
@click.option("--peaks", is_flag=True, help="Measure anew what the machine can do at best.")
@click.option("--json", "as_json", is_flag=True, help="Print seconds as JSON.")
@click.option("--no-cache", is_flag=True, help="Compile even if there is an earlier result.")
@with_compile_options
def command(
    model: str,
    inputs: tuple[str, ...],
    seed: int,
    seconds: float,
    warm_up: int,
    kernels: bool,
    sort: str,
    trace: str | None,
    peaks: bool,
    as_json: bool,
    no_cache: bool,
    options: CompileOptions,
) -> None:
    """Call MODEL again and again on one input; show median, percentiles and, if asked for, each kernel's share.

    Example: msc bench lenet5.mir --threads 2 --kernels
    """
    from msc.driver.models.model_inputs import read_values
    from msc.driver.reports.benchmark import Workload, benchmark, measurement_text
    from msc.support.files import file_to_write
    from msc.support.outputs import OutputSet

    workload = Workload(read_values(inputs), seed, warm_up, seconds)
    by_kernel = kernels or trace is not None or peaks or sort != "call"
    with OutputSet() as files, ExitStack() as opened:
        # The file is opened first: whether it can be written is told before the time is spent.
        file = None if trace is None else opened.enter_context(files.open(file_to_write(trace), is_trace))
        measured = benchmark(model, options, workload, by_kernel=by_kernel, use_cache=not no_cache, peaks_again=peaks)
        if file is not None:
            file.write(trace_text(measured, model, options.team).encode("utf-8"))
    say(json.dumps(measured.to_json()) if as_json else measurement_text(measured, sort))
    if trace is not None:
        say(f"wrote {trace}: open it in https://ui.perfetto.dev", err=True)


# A trace of real calls, kernel by kernel, in the JSON that Perfetto and chrome://tracing show.
_PROCESS = 1
_START = b'{"traceEvents": ['


def trace_text(measurement: Measurement, model: str, threads: int) -> str:
    """Slices of the calls of the build with clocks, and in each the slices of its kernels, with their rates."""
    events = [
        _name("process_name", 0, f"msc bench {model}"),
        _name("thread_name", 0, f"kernels, on {threads} thread{'s' if threads != 1 else ''} together"),
    ]
    origin = measurement.calls[0].start if measurement.calls else 0.0
    for number, call in enumerate(measurement.calls):
        events += _call_events(measurement, call, number, origin)
    about = {"measured_at": measurement.measured_at, "model": model, "threads": threads}
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ns", "otherData": about})


def is_trace(path: Path) -> bool:
    """Whether a file is a trace that this made."""
    with opened(path) as file:
        return file.read(len(_START)) == _START


def _call_events(
    measurement: Measurement, call: ProfiledCall, number: int, origin: float
) -> Iterator[dict[str, object]]:
    start = call.start - origin
    yield _slice(f"call {number}", start, call.end - call.start, {})
    for kernel, rate, seconds in zip(measurement.kernels, measurement.rates, call.seconds, strict=True):
        about: dict[str, object] = {} if rate is None else {"flops": rate.flops, "bytes": rate.bytes}
        if rate is not None and seconds > 0:
            about |= {"GFLOP/s": rate.flops / seconds * 1e-9, "computes": ", ".join(rate.origins)}
        yield _slice(kernel.name, start, seconds, about)
        start += seconds


def _slice(name: str, start: float, seconds: float, about: dict[str, object]) -> dict[str, object]:
    place = {"ph": "X", "pid": _PROCESS, "tid": 0, "ts": start * 1e6, "dur": seconds * 1e6}
    return {"name": name, "cat": "kernel", **place, "args": about}


def _name(kind: str, thread: int, name: str) -> dict[str, object]:
    return {"name": kind, "ph": "M", "pid": _PROCESS, "tid": thread, "args": {"name": name}}
