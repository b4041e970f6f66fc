"""`msc tune` where a simulator runs kernels: each kernel's other schedules, which take as long every time."""

from __future__ import annotations

import time
from collections.abc import Callable

from msc.analysis.kernels import kernels_in
from msc.analysis.target import target_of
from msc.backends.backend import SimulatedKernel
from msc.backends.registry import find_backend
from msc.dialects.gk import KernelOp
from msc.driver.compile import compile_model
from msc.driver.options import CompileOptions
from msc.poly.schedule_tree.nodes import Tree
from msc.poly.schedule_tree.text import to_lines
from msc.schedule.tuning.tuned_schedules import TunedSchedule, TuningFile, kernel_key, target_text
from msc.support.wording import counted

GAIN = 0.01
"""A schedule is kept if it takes fewer cycles by this share."""


def tune_simulated(model: str, options: CompileOptions, budget: float, report: Callable[[str], None]) -> TuningFile:
    """The schedules that beat msc's own by simulated cycles, tried kernel by kernel for `budget` seconds.

    Raises what compiling raises.
    """
    end, backend = time.perf_counter() + budget, find_backend(options.target)
    module = compile_model(model, options, stop_after="gk").module
    kernels = {kernel_key(k, target_of(k).machine, target_of(k).threads): k for k in kernels_in(module)}
    report(f"{counted(len(kernels), 'kernel')} to tune")
    found: list[TunedSchedule] = []
    tried = 0
    for number, (key, kernel) in enumerate(kernels.items()):
        share = (end - time.perf_counter()) / (len(kernels) - number)
        entry, count = _tuned(key, kernel, backend.on_simulator(kernel), time.perf_counter() + share)
        tried += count
        if entry is not None:
            report(f"{entry.label}: {entry.before_us:.2f} us became {entry.after_us:.2f} us")
            found.append(entry)
    report(f"{counted(tried, 'schedule')} tried, {counted(len(found), 'kernel')} faster")
    return TuningFile(tuple(found))


def _tuned(key: str, kernel: KernelOp, simulated: SimulatedKernel, end: float) -> tuple[TunedSchedule | None, int]:
    """The fastest schedule of a kernel, if it is another than msc's own, and how many were tried."""
    before, tried = simulated.microseconds(None), 0
    best: tuple[float, Tree] | None = None
    for tree in simulated.alternatives() if before is not None else ():
        if time.perf_counter() > end:
            break
        taken, tried = simulated.microseconds(tree), tried + 1
        if taken is not None and (best is None or taken < best[0]):
            best = taken, tree
    if before is None or best is None or best[0] > before * (1 - GAIN):
        return None, tried
    around = target_of(kernel)
    lines, target = tuple(to_lines(best[1])), target_text(around.machine)
    label, after = kernel.label.data, round(best[0], 3)
    return TunedSchedule(label, key, target, around.threads, round(before, 3), after, lines), tried
