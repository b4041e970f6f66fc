"""What kernels achieve: operations and bytes a second, and the shares of what the machine can do."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import cast

from msc.runtime.machine import Roofline, machine_from_json
from msc.support.diagnostics import Diagnostic, MscError
from msc.support.files import read_source
from msc.support.wording import counted

_MEASURE_AGAIN = "measure this model with these options: msc bench MODEL --kernels --json"


@dataclass(frozen=True)
class KernelTime:
    """One kernel call: median seconds, and its share of all of them."""

    name: str
    seconds: float
    share: float


@dataclass(frozen=True)
class KernelWork:
    """What a kernel does at least each time it runs: `flops` operations, `bytes` from and to memory.

    And how often it runs in a call of the model; None if that is computed.
    """

    flops: int
    bytes: int
    runs: int | None = 1
    origins: tuple[str, ...] = field(default=(), compare=False)
    """The operations of the model that it computes: nodes by name for ONNX, places in the text for others."""


@dataclass(frozen=True)
class KernelRate:
    """What a kernel achieves; shares are of the machine's peak of multiply-adds in f32 and of its bandwidth.

    That is the bandwidth measured on as many bytes as the kernel moves. A share above 1 says that what ran before left
    operands in nearer caches.
    """

    flops: int
    bytes: int
    gflops_per_second: float
    gbytes_per_second: float
    share_of_peak: float | None = None
    share_of_bandwidth: float | None = None
    origins: tuple[str, ...] = ()

    @property
    def is_above_peak(self) -> bool:
        """Whether a kernel is faster than the machine was found to be."""
        return max(self.share_of_peak or 0.0, self.share_of_bandwidth or 0.0) > 1

    @property
    def nearest_limit(self) -> float:
        """The larger share of what the machine can do: a small one says that there is time to win."""
        return max(self.share_of_peak or 0.0, self.share_of_bandwidth or 0.0)

    @staticmethod
    def of(work: KernelWork, seconds: float, machine: Roofline | None) -> KernelRate:
        """The rate of some work in some time."""
        flops, nbytes = work.flops / max(seconds, 1e-12), work.bytes / max(seconds, 1e-12)
        peak = None if machine is None else flops / machine.flops_per_second
        bandwidth = None if machine is None else nbytes / machine.bandwidth(work.bytes)
        return KernelRate(work.flops, work.bytes, flops * 1e-9, nbytes * 1e-9, peak, bandwidth, work.origins)


def rates(
    times: Sequence[KernelTime], works: Sequence[KernelWork], machine: Roofline | None
) -> tuple[KernelRate | None, ...]:
    """The rate of every call that runs a kernel, in all its runs.

    None for copies and for what runs a computed number of times, and for all where calls and kernels do not match.
    """
    calls = [k for k, t in enumerate(times) if t.name != "copy"]
    matching = dict(zip(calls, works, strict=True)) if len(calls) == len(works) else {}
    found = [(t.seconds, matching.get(k)) for k, t in enumerate(times)]
    return tuple(None if w is None or not w.runs else KernelRate.of(w, s / w.runs, machine) for s, w in found)


@dataclass(frozen=True)
class MeasuredKernels:
    """What `msc bench --kernels --json` found: seconds a call by kernel function, and the machine it ran on.

    `works` has the flops and bytes of the kernels that were told with theirs: they show of which model the times are.
    """

    seconds: Mapping[str, float]
    machine: Roofline | None = field(default=None)
    works: Mapping[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])

    @staticmethod
    def read(path: Path) -> MeasuredKernels:
        """Read the JSON of `msc bench`. Raises MSC0001 to MSC0003, and MSC0008 when it is something else."""
        text = read_source(path)
        try:
            data = cast("dict[str, object]", json.loads(text))
            items = cast("list[dict[str, object]]", data["kernels"])
            kernels, machine = [_named_seconds(item) for item in items], data.get("machine")
            works = {name: work for (name, _), item in zip(kernels, items, strict=True) if (work := _work(item))}
            return MeasuredKernels(_means(kernels), None if machine is None else machine_from_json(machine), works)
        except (KeyError, ValueError, TypeError, AttributeError, RecursionError) as error:
            message = f"'{path}' is not what msc bench --kernels --json prints"
            raise MscError(Diagnostic("MSC0008", message, notes=(str(error)[:200],))) from error

    def check(self, works: Mapping[str, tuple[int, int]], threads: int) -> None:
        """Raises MSC0008 where the times are not those of kernels that do `works`, on so many threads (0: any)."""
        problems = list[str]()
        if self.machine is not None and threads not in (0, self.machine.threads):
            problems.append(f"the times are of {counted(self.machine.threads, 'thread')}, this is for {threads}")
        others = {name: work for name, work in self.works.items() if works.get(name) != work}
        for name, (flops, nbytes) in others.items():
            here = "{} flops on {} bytes".format(*works[name]) if name in works else "no such kernel"
            problems.append(f"'{name}' was measured doing {flops} flops on {nbytes} bytes; this model has {here}")
        if problems:
            notes = tuple(problems[1:3])
            raise MscError(Diagnostic("MSC0008", problems[0], notes=notes, help=_MEASURE_AGAIN))


def _named_seconds(item: dict[str, object]) -> tuple[str, float]:
    name, seconds = item["name"], item["seconds"]
    if not isinstance(name, str) or not isinstance(seconds, int | float):
        raise ValueError("a kernel's name is a string and its seconds are a number")
    return name, float(seconds)


def _work(item: Mapping[str, object]) -> tuple[int, int] | None:
    flops, nbytes = item.get("flops"), item.get("bytes")
    return (flops, nbytes) if isinstance(flops, int) and isinstance(nbytes, int) else None


def _means(kernels: Sequence[tuple[str, float]]) -> dict[str, float]:
    """Kernels that several calls share take the mean of them."""
    groups: dict[str, list[float]] = {}
    for name, seconds in kernels:
        groups.setdefault(name, []).append(seconds)
    return {name: sum(values) / len(values) for name, values in groups.items()}


def rate_json(rate: KernelRate | None) -> dict[str, object]:
    """The rate's fields, or none of them."""
    return {} if rate is None else asdict(rate)
