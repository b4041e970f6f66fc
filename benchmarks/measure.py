"""Interleaved timing: every round times every engine, so that a slow moment of the machine hits all of them alike."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from benchmarks.peers import Runner

WARM_UP_CALLS = 5
"""Untimed calls at the start of each turn: the engine before has filled the caches with its own data.

As many as fit into half a turn, and at least one.
"""

MINIMUM_ROUNDS = 5


Clock: TypeAlias = Callable[[], int]
"""Nanoseconds since some moment."""


@dataclass(frozen=True)
class Plan:
    """How long to measure."""

    rounds: int = 30
    seconds_per_turn: float = 0.02
    seconds_per_engine: float = 10.0
    """Slow models get fewer rounds, but at least five."""
    seconds_between_turns: float = 0.0
    """With several threads: for the workers of the engine before, which may spin for a while before they sleep."""
    cpu_time: bool = False
    """Whether a call's time is that of the process on its processors, which other processes do not lengthen."""

    @property
    def clock(self) -> Clock:
        """What tells the time."""
        return time.process_time_ns if self.cpu_time else time.perf_counter_ns


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


@dataclass(frozen=True)
class Turn:
    """How one engine's turn goes: calls that warm up, then calls that are timed."""

    warm_up: int
    calls: int
    seconds: float
    clock: Clock = time.perf_counter_ns

    @staticmethod
    def of(run: Runner, seconds: float, clock: Clock = time.perf_counter_ns) -> Turn:
        """As long as `seconds` where calls are short; a single call of one that takes longer."""
        run()
        call = max(_median_of(run, 1, clock), 1e-9)
        if call < seconds / 20:
            call = _median_of(run, 20, clock)
        warm_up = max(1, min(WARM_UP_CALLS, int(seconds / 2 / call)))
        calls = max(1, int(seconds / call))
        return Turn(warm_up, calls, call * (warm_up + calls), clock)

    def take(self, run: Runner) -> float:
        """The median time of one call, in seconds."""
        for _ in range(self.warm_up):
            run()
        return _median_of(run, self.calls, self.clock)


def _median_of(run: Runner, calls: int, clock: Clock) -> float:
    times: list[int] = []
    for _ in range(calls):
        start = clock()
        run()
        times.append(clock() - start)
    return float(np.median(times)) * 1e-9


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


def interleaved(
    runners: Mapping[str, Runner],
    plan: Plan,
    between_rounds: Callable[[], None] = lambda: None,
    after_turn: Callable[[str], None] = lambda _: None,
) -> dict[str, list[float]]:
    """Per engine, the median seconds of one call in each round; each round starts with the next engine."""
    names = list(runners)
    turns = {name: Turn.of(runners[name], plan.seconds_per_turn, plan.clock) for name in names}
    slowest = max(turn.seconds for turn in turns.values())
    rounds = max(min(plan.rounds, MINIMUM_ROUNDS), min(plan.rounds, int(plan.seconds_per_engine / slowest)))
    medians: dict[str, list[float]] = {name: [] for name in names}
    for round_number in range(rounds):
        between_rounds()
        first = round_number % len(names)
        for name in names[first:] + names[:first]:
            time.sleep(plan.seconds_between_turns)
            medians[name].append(turns[name].take(runners[name]))
            after_turn(name)
    return medians


def ratios(times: list[float], base: list[float]) -> Spread:
    """How many times the base's latency, round by round."""
    return Spread.of([value / reference for value, reference in zip(times, base, strict=True)])
