"""Fit the figures of a machine to a corpus: one figure after the other, as long as that lessens the error."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from math import log
from typing import Any

import numpy as np

from benchmarks.cost_model.kernels import Subject, regret
from msc.targets.machine import Machine

FITTED = (
    *("memory.L2.bytes_per_cycle", "memory.L3.bytes_per_cycle", "memory.DRAM.bytes_per_cycle"),
    *("memory.L2.latency", "memory.L3.latency", "latency.reduce_lanes", "synchronisation.call"),
    *("operators.division", "operators.exponential", "operators.trigonometric", "operators.power"),
    *("code.window", "code.overlap", "code.exposed", "code.lost", "code.lost_stores", "code.iteration", "code.entry"),
    *("code.short_entry", "code.tile", "code.spill", "code.tight", "ports.split"),
)
"""What is no vendor's figure: what a core sustains, and what compiled code costs."""

STEPS = (0.5, 0.7, 0.85, 0.93, 1.08, 1.18, 1.4, 2.0)
NEAR, FAR = 1.0, 0.4
"""Weights of schedules up to twice as slow as the kernel's fastest, and of others, which matter less."""
ENOUGH = 2e-4
"""Less gain of a whole round ends the search."""


def fitted(subjects: Sequence[Subject], machine: Machine, report: Callable[[str], None]) -> Machine:
    """The machine with the figures that lessen the error on the kernels that are not held out."""
    kept = [subject for subject in subjects if not subject.is_held_out]
    workers = min(4, len(os.sched_getaffinity(0)))
    with ProcessPoolExecutor(workers, initializer=_begin, initargs=(kept,)) as pool:
        best = _loss(machine)(pool)
        report(f"{len(kept)} kernels, error {best:.4f}")
        while True:
            before = best
            for name in FITTED:
                value = figure(machine, name)
                candidates = [with_figure(machine, name, value * step) for step in STEPS]
                losses = list(pool.map(_loss_here, candidates))
                least = min(range(len(losses)), key=losses.__getitem__)
                if losses[least] < best - ENOUGH / 4:
                    machine, best = candidates[least], losses[least]
                    report(f"{name} = {figure(machine, name):.4g}: error {best:.4f}")
            if best > before - ENOUGH:
                return machine


def loss(subjects: Sequence[Subject], machine: Machine) -> float:
    """Mean absolute logarithms: of errors, weighed, and of what picks take over the fastest; none counts above 1.5."""
    total = weights = slower = 0.0
    for subject in subjects:
        times, errors = np.array(subject.microseconds), np.array(subject.errors(machine))
        weight = np.where(times <= 2 * times.min(), NEAR, FAR) / len(times)
        total += float(np.sum(weight * np.minimum(np.abs(errors), 1.5)))
        weights += float(np.sum(weight))
        slower += min(1.5, log(regret(subject.cycles(machine), subject.microseconds)))
    return total / weights + slower / len(subjects)


def figure(machine: Machine, name: str) -> float:
    """A figure by its place in a file."""
    table, *rest = name.split(".")
    if table == "memory":
        return getattr(next(level for level in machine.levels if level.name == rest[0]), rest[1])
    return getattr(getattr(machine, table), rest[0])


def with_figure(machine: Machine, name: str, value: float) -> Machine:
    """The machine with another value of a figure."""
    table, *rest = name.split(".")
    if table == "memory":
        change: dict[str, Any] = {rest[1]: value}
        levels = (replace(level, **change) if level.name == rest[0] else level for level in machine.levels)
        return replace(machine, levels=tuple(levels))
    return replace(machine, **{table: replace(getattr(machine, table), **{rest[0]: value})})


_KERNELS: list[Subject] = []


def _begin(subjects: list[Subject]) -> None:
    _KERNELS[:] = subjects


def _loss_here(machine: Machine) -> float:
    return loss(_KERNELS, machine)


def _loss(machine: Machine) -> Callable[[ProcessPoolExecutor], float]:
    return lambda pool: pool.submit(partial(_loss_here, machine)).result()
