"""A trace of real calls, kernel by kernel, in the JSON that Perfetto and chrome://tracing show."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from msc.driver.reports.benchmark import Measurement, ProfiledCall
from msc.support.plain_files import opened

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
