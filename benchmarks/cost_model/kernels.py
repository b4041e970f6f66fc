"""The kernels of a corpus as the cost model reads them, and how far its predictions are from the measured times."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import log

from xdsl.context import Context

from benchmarks.cost_model.corpus import Corpus, Entry
from msc.analysis.kernel_model import kernel_model, logical_model
from msc.cost.prediction import KernelCost
from msc.cost.traffic import Moved
from msc.dialects.gk import KernelOp
from msc.driver.passes.registry import new_context
from msc.ir.reading import parse_module
from msc.poly.model import KernelModel
from msc.poly.schedule_tree.nodes import Tree
from msc.poly.schedule_tree.text import from_lines
from msc.support.hashing import digest
from msc.targets.machine import Machine

FOLDS = 3
"""One kernel of so many is held out: nothing is fitted to it."""


@dataclass(frozen=True)
class Subject:
    """A kernel with its measured schedules; `microseconds` are in their order."""

    entry: Entry
    model: KernelModel
    schedules: tuple[Tree, ...]
    machine: Machine
    structure: str
    """What it computes, in the order of the axes of its tensors: no other kernel computes the same."""

    @cached_property
    def is_held_out(self) -> bool:
        """Whether it tests what is fitted to others: by its structure."""
        return int(digest((self.structure,))[:8], 16) % FOLDS == 0

    @property
    def microseconds(self) -> tuple[float, ...]:
        """At the machine's clock: others on the host slowed some kernels down, and the clock measured beside them."""
        clock = min(self.entry.ghz / self.machine.ghz, 1.0)
        return tuple(run.us * clock for run in self.entry.runs)

    @cached_property
    def moved(self) -> tuple[tuple[Moved, ...], ...]:
        """The traffic of each schedule, which no fitted figure changes."""
        cost = KernelCost(self.model, self.machine)
        return tuple(cost.moved(tree) for tree in self.schedules)

    def cycles(self, machine: Machine) -> list[float]:
        """As predicted with the figures of a machine whose caches are those of `self.machine`."""
        cost = KernelCost(self.model, machine)
        known = zip(self.schedules, self.moved, self._instructions(machine), strict=True)
        return [cost.prediction(tree, 1, moved, cycles).cycles for tree, moved, cycles in known]

    @cached_property
    def _of_instructions(self) -> dict[object, list[float]]:
        """Cycles of instructions, by the figures of a machine that they depend on."""
        return {}

    def _instructions(self, machine: Machine) -> list[float]:
        code = replace(machine.code, exposed=0.0, exposed_memory=0.0, lost=0.0, lost_stores=0.0)
        key = machine.ports, machine.latency, machine.operators, code
        if key not in self._of_instructions:
            cost = KernelCost(self.model, machine)
            self._of_instructions[key] = [cost.instructions(tree, 1) for tree in self.schedules]
        return self._of_instructions[key]

    def errors(self, machine: Machine) -> list[float]:
        """Logarithms of predicted over measured time, schedule by schedule."""
        return [
            log(c / (us * 1e3 * machine.ghz)) for c, us in zip(self.cycles(machine), self.microseconds, strict=True)
        ]


def repeated(entry: Entry) -> list[float]:
    """How much slower each of two measurements finds the schedule that is fastest in the other one."""
    first, second = (tuple(run.times[k] for run in entry.runs) for k in (0, -1))
    return [regret(first, second), regret(second, first)] if len(entry.runs[0].times) > 1 else []


def favoured_picks(entry: Entry, predicted: Sequence[float]) -> list[float]:
    """How much slower the pick is than the fastest, in the measurement that is best for it; nothing of a single one."""
    each = [regret(predicted, [run.times[k] for run in entry.runs]) for k in range(len(entry.runs[0].times))]
    return [min(each)] if len(each) > 1 else []


def subjects(corpus: Corpus, machine: Machine) -> Iterator[Subject]:
    """The kernels of a corpus."""
    context = new_context()
    for entry in corpus.entries:
        schedules = tuple(from_lines(run.schedule) for run in entry.runs)
        kernel = kernel_of(context, entry)
        yield Subject(entry, kernel_model(kernel), schedules, machine, logical_model(kernel).structure)


def kernel_of(context: Context, entry: Entry) -> KernelOp:
    """The kernel of an entry."""
    module = parse_module(context, entry.kernel, entry.label)
    return next(op for op in module.walk() if isinstance(op, KernelOp))


def regret(predicted: Sequence[float], measured: Sequence[float]) -> float:
    """How much slower the schedule is that is predicted to be fastest than the one that is."""
    best = min(range(len(predicted)), key=predicted.__getitem__)
    return measured[best] / min(measured)
