"""Interleaved timing: every round times every engine, so that a slow moment of the machine hits all of them alike."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from benchmarks.peers import Runner

WARM_UP_CALLS = 5
"""Untimed calls at the start of each turn: the engine before has filled the caches with its own data."""


@dataclass(frozen=True)
class Plan:
    """How long to measure."""

    rounds: int = 30
    seconds_per_turn: float = 0.02
    seconds_between_turns: float = 0.0
    """With several threads: for the workers of the engine before, which may spin for a while before they sleep."""


@dataclass(frozen=True)
class Spread:
    """A median with the quartiles around it."""

    low: float
    median: float
    high: float

    @staticmethod
    def of(values: list[float]) -> Spread:
        low, median, high = np.percentile(values, [25, 50, 75])
        return Spread(float(low), float(median), float(high))


def _turn(run: Runner, calls: int) -> float:
    """The median time of one call, in seconds, over one turn."""
    for _ in range(WARM_UP_CALLS):
        run()
    times: list[int] = []
    for _ in range(calls):
        start = time.perf_counter_ns()
        run()
        times.append(time.perf_counter_ns() - start)
    return float(np.median(times)) * 1e-9


def _calls_per_turn(run: Runner, seconds: float) -> int:
    """As many calls as fill one turn, and at least five."""
    _turn(run, 20)
    return max(5, int(seconds / _turn(run, 20)))


@contextmanager
def quiet(threads: int, *, pin: bool) -> Generator[None]:
    """No garbage collection, and the process kept on its first ``threads`` CPUs where the system can do that."""
    before = os.sched_getaffinity(0) if pin and hasattr(os, "sched_setaffinity") else None
    if before is not None:
        os.sched_setaffinity(0, sorted(before)[:threads])
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        if before is not None:
            os.sched_setaffinity(0, before)


def interleaved(runners: Mapping[str, Runner], plan: Plan) -> dict[str, list[float]]:
    """Per engine, the median seconds of one call in each round; each round starts with the next engine."""
    names = list(runners)
    calls = {name: _calls_per_turn(runners[name], plan.seconds_per_turn) for name in names}
    medians: dict[str, list[float]] = {name: [] for name in names}
    for round_number in range(plan.rounds):
        first = round_number % len(names)
        for name in names[first:] + names[:first]:
            time.sleep(plan.seconds_between_turns)
            medians[name].append(_turn(runners[name], calls[name]))
    return medians


def ratios(times: list[float], base: list[float]) -> Spread:
    """How many times the base's latency, round by round."""
    return Spread.of([value / reference for value, reference in zip(times, base, strict=True)])
