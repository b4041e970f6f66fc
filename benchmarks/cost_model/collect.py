"""Measure kernels with msc's own schedule and with neighbours of it, and write them to a corpus.

A kernel is built once with all its schedules, whose calls take turns on one core, in short bursts. The least time of a
schedule counts: what else runs on a shared machine only makes calls slower.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path

from xdsl.context import Context

from benchmarks.cost_model.bursts import Variants, times, times_of, variants
from benchmarks.cost_model.corpus import Corpus, Entry, Measured, append, write
from benchmarks.cost_model.kernels import kernel_of
from benchmarks.cost_model.sources import Source
from msc.analysis.kernel_model import kernel_model
from msc.dialects.gk import KernelOp, ScheduleAttr
from msc.dialects.gk.attributes import GK_PATTERN, GK_REASONS, GK_SCHEDULE, GK_SCHEDULE_REASONS
from msc.driver.compile import compile_model
from msc.driver.options import CompileOptions
from msc.driver.passes.registry import new_context
from msc.driver.tuner.variants import variants_module
from msc.ir.locations import format_module
from msc.poly.dependences import dependences
from msc.poly.model import KernelModel
from msc.poly.schedule_tree.nodes import ScheduleError, Tree
from msc.poly.schedule_tree.text import from_lines, to_lines
from msc.poly.schedule_tree.verify import verify
from msc.schedule.schedule_kernels import ScheduleKernels, schedule_of
from msc.schedule.strategy import decide
from msc.schedule.tuning.neighbours import Neighbourhood
from msc.support.diagnostics import MscError
from msc.support.hashing import digest
from msc.targets.catalogue import machine_named
from msc.targets.detection import detect_cpu_model

SCHEDULES = 9
"""Of one kernel, its own among them."""
PREDICTED_BEST = 3
"""Neighbours that are taken because the model thinks they are best; the others are drawn."""
LEAST_US, MOST_US = 0.2, 40_000.0
"""Shorter calls are mostly the call itself; longer ones are always disturbed."""


def collect(models: Sequence[Source], path: Path, cpu: int, budget: float, report: Callable[[str], None]) -> None:
    """Append the kernels of models to a corpus, those whose like it has not, for at most `budget` seconds."""
    context, before = new_context(), Corpus.read(path).entries if path.exists() else ()
    known = {kernel_model(kernel_of(context, entry)).structure for entry in before}
    end = time.monotonic() + budget
    for model in models:
        try:
            kernels = list(_kernels(model))
        except MscError as error:
            report(f"{model.name}: {error}")
            continue
        for kernel in kernels:
            structure = kernel_model(kernel).structure
            if structure in known:
                continue
            known.add(structure)
            if time.monotonic() > end:
                return
            try:
                entry = _measured(model.name, kernel_text(kernel), kernel, cpu)
            except (MscError, ValueError) as error:
                report(f"{model.name} {kernel.label.data}: {error}")
                continue
            if entry is not None:
                append(path, detect_cpu_model(), entry)
                report(f"{model.name} {entry.label}: {len(entry.runs)} schedules, {entry.runs[0].us:.1f} us")


def compile_all(path: Path, folder: Path, budget: float, report: Callable[[str], None]) -> None:
    """Build the kernels of a corpus with their schedules, those that the folder has not, for at most `budget` seconds.

    Compilers do not run beside measurements then.
    """
    context, end = new_context(), time.monotonic() + budget
    entries = Corpus.read(path).entries
    for number, entry in enumerate(entries):
        if time.monotonic() > end:
            report(f"{number} of {len(entries)} kernels are built")
            return
        _built(context, entry, folder)
    report("all kernels are built")


def repeat(path: Path, folder: Path, cpu: int, budget: float, report: Callable[[str], None]) -> None:
    """Measure all schedules of a corpus once more, for at most `budget` seconds; the folder has kernels that are built.

    Those measured least often come first, so that several portions measure each once. Else kernels come in another
    order each time: what disturbed one, and what it lay beside, are others.
    """
    corpus, end, context = Corpus.read(path), time.monotonic() + budget, new_context()
    entries = list(corpus.entries)
    drawn = random.sample(range(len(entries)), len(entries))
    least = min(len(entry.runs[0].times) for entry in entries)
    for k in sorted(drawn, key=lambda k: len(entries[k].runs[0].times)):
        before = entries[k]
        if time.monotonic() > end or len(before.runs[0].times) > least:
            break
        found = times_of(_built(context, before, folder), cpu)
        entries[k] = before.with_times(found.ghz, found.us)
        report(f"{before.model} {before.label}: {before.runs[0].us:.1f} us, now {entries[k].runs[0].times[-1]:.1f} us")
    write(path, replace(corpus, entries=tuple(entries)))
    left = sum(len(entry.runs[0].times) == least for entry in entries)
    report(f"{left} kernels are left" if left else "all kernels are measured once more")


def _built(context: Context, entry: Entry, folder: Path) -> Variants:
    """An entry's kernel with its schedules, built in a folder of its own, or found there."""
    lines = (line for run in entry.runs for line in (*run.schedule, ""))
    place = folder / digest((entry.kernel, *lines))[:16]
    place.mkdir(parents=True, exist_ok=True)
    return variants(kernel_of(context, entry), [from_lines(run.schedule) for run in entry.runs], place)


def renew(path: Path, cpu: int, report: Callable[[str], None]) -> None:
    """Measure anew the kernels of a corpus that have other dimensions now, which their schedules no longer fit."""
    corpus, context, machine = Corpus.read(path), new_context(), machine_named("native")
    entries = list[Entry]()
    for before in corpus.entries:
        kernel = kernel_of(context, before)
        model = kernel_model(kernel)
        if all(_fits(model, run.schedule) for run in before.runs):
            entries.append(before)
            continue
        kernel.attributes[GK_SCHEDULE] = ScheduleAttr(decide(model, dependences(model), machine, 1).tree)
        entry = _measured(before.model, before.kernel, kernel, cpu)
        now = "too short" if entry is None else f"{entry.runs[0].us:.1f} us"
        report(f"{before.model} {before.label}: {before.runs[0].us:.1f} us, now {now}")
        entries += [] if entry is None else [entry]
    write(path, replace(corpus, entries=tuple(entries)))


def _fits(model: KernelModel, schedule: Sequence[str]) -> bool:
    try:
        verify(model, from_lines(schedule))
    except ScheduleError:
        return False
    return True


def _kernels(model: Source) -> Iterator[KernelOp]:
    """The kernels of a model, each with msc's schedule."""
    compilation = compile_model(str(model.file()), CompileOptions(), "gk")
    ScheduleKernels().apply(compilation.model.context, compilation.module)
    for op in compilation.module.walk():
        if isinstance(op, KernelOp):
            yield op


def _measured(name: str, text: str, kernel: KernelOp, cpu: int) -> Entry | None:
    """The kernel's entry; None where calls are too short or too long."""
    model, own = kernel_model(kernel), schedule_of(kernel)
    generator = random.Random(text)
    around = Neighbourhood(model, dependences(model), machine_named("native"), 1)
    near = list(islice(around.of(own), PREDICTED_BEST))
    drawn = islice(_drawn(around, own, generator), SCHEDULES - 1 - len(near))
    schedules = list({tuple(to_lines(schedule)): schedule for schedule in chain((own,), near, drawn)}.values())
    found = times(kernel, schedules, cpu)
    if not LEAST_US <= found.us[0] <= MOST_US:
        return None
    runs = (Measured(tuple(to_lines(p)), (round(t, 3),)) for p, t in zip(schedules, found.us, strict=True))
    return Entry(name, kernel.label.data, text, round(found.ghz, 3), tuple(runs))


def _drawn(around: Neighbourhood, own: Tree, generator: random.Random) -> Iterator[Tree]:
    """Random walks of one to three steps from a schedule, without end as long as there are neighbours."""
    for _ in range(10 * SCHEDULES):
        schedule: Tree | None = own
        for _ in range(generator.randint(1, 3)):
            schedule = around.drawn(schedule, generator) if schedule is not None else None
        if schedule is not None:
            yield schedule


def kernel_text(kernel: KernelOp) -> str:
    """A module whose @main runs the kernel, without a schedule."""
    module = variants_module(kernel, [schedule_of(kernel)])
    for op in module.walk():
        if isinstance(op, KernelOp):
            for name in (GK_SCHEDULE, GK_SCHEDULE_REASONS, GK_REASONS, GK_PATTERN):
                op.attributes.pop(name, None)
    return format_module(module)
