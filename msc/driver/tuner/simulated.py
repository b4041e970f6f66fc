"""`msc tune` for DaVinci cores: each kernel's other schedules on the simulator, which takes as long every time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from msc.analysis.kernel_model import kernel_model, output_positions
from msc.analysis.target import davinci_of, target_of
from msc.dialects.davinci.attributes import DAVINCI_SCHEDULE
from msc.dialects.davinci.kernels import scalar_cycles
from msc.dialects.gk import KernelOp, ScheduleAttr
from msc.dialects.gk.attributes import GK_SCHEDULE
from msc.driver.compile import compile_model
from msc.driver.options import CompileOptions
from msc.driver.simulation.kernels import simulate_kernel
from msc.lowering.ascend.alternatives import alternatives
from msc.lowering.ascend.insert_sync import synchronise
from msc.lowering.ascend.kernels import Request, write_kernel
from msc.poly.schedule_tree.nodes import Tree
from msc.poly.schedule_tree.text import to_lines
from msc.schedule.tuned_schedules import TunedSchedule, TuningFile, kernel_key, target_text
from msc.support.diagnostics import MscError
from msc.support.wording import counted

GAIN = 0.01
"""A schedule is kept if it takes fewer cycles by this share."""


def tune_simulated(model: str, options: CompileOptions, budget: float, report: Callable[[str], None]) -> TuningFile:
    """The schedules that beat msc's own by simulated cycles, tried kernel by kernel for `budget` seconds.

    Raises what compiling raises.
    """
    end = time.perf_counter() + budget
    module = compile_model(model, options, stop_after="gk").module
    kernels = {kernel_key(k, target_of(k).machine, target_of(k).threads): k for k in _kernels(module)}
    report(f"{counted(len(kernels), 'kernel')} to tune")
    found: list[TunedSchedule] = []
    tried = 0
    for number, (key, kernel) in enumerate(kernels.items()):
        share = (end - time.perf_counter()) / (len(kernels) - number)
        entry, count = _tuned(key, kernel, time.perf_counter() + share)
        tried += count
        if entry is not None:
            report(f"{entry.label}: {entry.before_us:.2f} us became {entry.after_us:.2f} us")
            found.append(entry)
    report(f"{counted(tried, 'schedule')} tried, {counted(len(found), 'kernel')} faster")
    return TuningFile(tuple(found))


def _kernels(module: object) -> Iterator[KernelOp]:
    from xdsl.dialects.builtin import ModuleOp

    assert isinstance(module, ModuleOp)
    return (op for op in module.walk() if isinstance(op, KernelOp))


def _tuned(key: str, kernel: KernelOp, end: float) -> tuple[TunedSchedule | None, int]:
    """The fastest schedule of a kernel, if it is another than msc's own, and how many were tried."""
    before = _microseconds(kernel, None)
    own = kernel.attributes.pop(DAVINCI_SCHEDULE, None)
    best: tuple[float, Tree] | None = None
    tried = 0
    request = Request(kernel, kernel_model(kernel), output_positions(kernel), davinci_of(kernel), "tuned")
    for tree in alternatives(request) if before is not None else ():
        if time.perf_counter() > end:
            break
        if isinstance(own, ScheduleAttr) and tree == own.data:
            continue
        taken, tried = _microseconds(kernel, tree), tried + 1
        if taken is not None and (best is None or taken < best[0]):
            best = taken, tree
    if before is None or best is None or best[0] > before * (1 - GAIN):
        return None, tried
    around = target_of(kernel)
    lines, target = tuple(to_lines(best[1])), target_text(around.machine)
    label, after = kernel.label.data, round(best[0], 3)
    return TunedSchedule(label, key, target, around.threads, round(before, 3), after, lines), tried


def _microseconds(kernel: KernelOp, tree: Tree | None) -> float | None:
    """One simulated run with a schedule, None for msc's own; None where it does not run, or the scalar unit runs it."""
    if tree is not None:
        kernel.attributes[GK_SCHEDULE] = ScheduleAttr(tree)
    try:
        written = write_kernel(kernel, davinci_of(kernel), "tuned")
        if scalar_cycles(written) is not None:
            return None
        synchronise(written)
        return simulate_kernel(written).task_us
    except MscError:
        return None
    finally:
        kernel.attributes.pop(GK_SCHEDULE, None)
