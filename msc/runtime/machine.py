"""What this machine can do at best: multiply-adds and bytes a second, measured by two small C programs.

`measured_machine` measures once and keeps the result in the user's cache; only verbs that time something ask for it.
"""

from __future__ import annotations

import ctypes
import json
import subprocess
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import cast

from msc.runtime.cache import open_cache
from msc.runtime.toolchain import find_toolchain
from msc.support.diagnostics import Diagnostic, MscError
from msc.support.files import write_text
from msc.support.hashing import digest
from msc.support.processors import detect_cores
from msc.support.temporary import temporary_folder
from msc.targets.detection import detect_cpu_model, detect_flags, detect_machine

_FLAGS = ("-O3", "-std=gnu11", "-march=native", "-ffp-contract=fast")
_TIMEOUT = 60
_MAXIMUM_BYTES = 1 << 16
_SHORT_STEPS = 80_000
"""Of the program that measures multiply-adds: 0.2 ms."""


WORKING_SETS = tuple(size << 20 for size in (1, 4, 16, 32, 64, 256, 576))
"""Bytes that a thread passes over when bandwidth is measured; the last are more than any cache holds."""


@dataclass(frozen=True)
class Roofline:
    """Peak multiply-adds a second in f32 and bytes a second to and from memory, by `threads` threads together.

    `bandwidths` are bytes a second by the bytes passed over, ever more of them: less stays in caches.
    """

    cpu: str
    cpus: int
    multiply_adds_per_second: float
    bytes_per_second: float
    threads: int = 1
    bandwidths: tuple[tuple[int, float], ...] = ()

    def bandwidth(self, nbytes: int) -> float:
        """Bytes a second where so many are passed over again and again."""
        return next((rate for size, rate in self.bandwidths if size >= nbytes), self.bytes_per_second)

    @property
    def flops_per_second(self) -> float:
        """A multiply-add counts as two."""
        return 2 * self.multiply_adds_per_second


def probe(threads: int = 1) -> Roofline:
    """Measure this machine with as many processes at once as `threads`; about two seconds.

    Raises MSC0502 when there is no C compiler and MSC0508 when a program fails.
    """
    with temporary_folder("probe") as folder:
        (fma,) = _rates(_built("fma", folder), threads)
        triads = _rates(_built("triad", folder), threads, map(str, WORKING_SETS))
    bandwidths = tuple((size * threads, rate) for size, rate in zip(WORKING_SETS, triads, strict=True))
    return Roofline(detect_cpu_model(), detect_cores(), fma, triads[-1], threads, bandwidths)


@contextmanager
def multiply_add_rate(threads: int = 1) -> Generator[Callable[[], float]]:
    """A function that measures multiply-adds a second within about 20 ms, to be called between other measurements.

    So many threads may run slower for long than they do for a moment, and a shared machine is not always as fast.
    Raises as `probe`.
    """
    with temporary_folder("probe") as folder:
        program = _built("fma", folder)
        yield lambda: _rates(program, threads, ("4",))[0]


@contextmanager
def rate_at_clock() -> Generator[Callable[[], float]]:
    """A function that measures multiply-adds a second of the caller's core within a fifth of a millisecond.

    What ran before has set the clock: a core does fewer multiply-adds after work that needs more power than they do
    alone, as work that also reads memory does. Raises as `probe`.
    """
    with temporary_folder("probe") as folder:
        library = ctypes.CDLL(str(_built("fma", folder, "-shared", "-fPIC")))
        measure = library.multiply_adds_per_second
        measure.argtypes, measure.restype = (ctypes.c_long,), ctypes.c_double
        yield lambda: float(measure(_SHORT_STEPS))


def measured_machine(threads: int = 1, *, older_than: float | None = None) -> Roofline:
    """As `probe`, from the cache if it was measured before on this machine.

    What was measured more than `older_than` seconds ago is measured anew, and each rate is the larger of both: a
    machine that was busy seems slower than it is.
    """
    store = open_cache()
    count = threads or detect_cores()
    path = store.folder / f"machine-{_key(count)}.json" if store is not None else None
    known = _read(path) if path is not None else None
    if known is not None and path is not None and not _is_older(path, older_than):
        return known
    machine = probe(count)
    if known is not None:
        machine = _larger(known, machine)
    if path is not None:
        write_text(path, json.dumps(asdict(machine)))
    return machine


def _is_older(path: Path, seconds: float | None) -> bool:
    return seconds is not None and time.time() - path.stat().st_mtime > seconds


def _larger(a: Roofline, b: Roofline) -> Roofline:
    """The best of two measurements of one machine."""
    before = dict(a.bandwidths)
    bandwidths = tuple((size, max(rate, before.get(size, 0.0))) for size, rate in b.bandwidths)
    return replace(
        b,
        multiply_adds_per_second=max(a.multiply_adds_per_second, b.multiply_adds_per_second),
        bytes_per_second=max(a.bytes_per_second, b.bytes_per_second),
        bandwidths=bandwidths,
    )


def _key(threads: int) -> str:
    flags = " ".join(sorted(detect_flags()))
    sources = (_source("fma"), _source("triad"))
    return digest((detect_machine(), detect_cpu_model(), flags, str(detect_cores()), str(threads), *sources))


def _source(name: str) -> str:
    return (files("msc.runtime") / "c" / f"probe_{name}.c").read_text(encoding="utf-8")


def _built(name: str, folder: Path, *flags: str) -> Path:
    source, program = folder / f"{name}.c", folder / name
    source.write_text(_source(name), encoding="utf-8")
    try:
        result = find_toolchain().run([*_FLAGS, *flags, source.name, "-o", program.name], folder)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _failed(name, str(error)) from error
    if result.returncode:
        raise _failed(name, result.stderr)
    return program


def _rates(program: Path, processes: int, arguments: Iterable[str] = ()) -> list[float]:
    """The sums of what the processes print, all running at once, line by line."""
    command = [str(program), *arguments]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(processes)]
    try:
        printed = [[float(line) for line in p.communicate(timeout=_TIMEOUT)[0].splitlines()] for p in running]
        return [sum(rates) for rates in zip(*printed, strict=True)]
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        for process in running:
            process.kill()
        raise _failed(program.name, str(error)) from error


def _failed(name: str, reason: str) -> MscError:
    notes = tuple(reason.strip().splitlines()[:4])
    return MscError(Diagnostic("MSC0508", f"the program that measures the machine's {name} rate failed", notes=notes))


def _read(path: Path) -> Roofline | None:
    """A machine that was measured; None for anything that is not one."""
    try:
        if path.stat().st_size > _MAXIMUM_BYTES:
            return None
        return machine_from_json(json.loads(path.read_text("utf-8")))
    except (OSError, ValueError):
        return None


def machine_from_json(data: object) -> Roofline:
    """The inverse of `dataclasses.asdict`. Raises ValueError."""
    try:
        fields = cast("dict[str, float]", data)
        rates = float(fields["multiply_adds_per_second"]), float(fields["bytes_per_second"])
        sizes = cast("list[list[float]]", cast("dict[str, object]", data).get("bandwidths", []))
        bandwidths = tuple((int(size), float(rate)) for size, rate in sizes)
        return Roofline(str(fields["cpu"]), int(fields["cpus"]), *rates, int(fields["threads"]), bandwidths)
    except (KeyError, TypeError) as error:
        raise ValueError(f"not a machine: {error}") from error
