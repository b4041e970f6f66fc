"""How long a call takes: repeated, summarised by order statistics, which outliers do not move."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil


@dataclass(frozen=True)
class Timing:
    """Seconds a call, sorted."""

    samples: tuple[float, ...]

    @property
    def minimum(self) -> float:
        return self.samples[0]

    @property
    def median(self) -> float:
        return self.percentile(50)

    def percentile(self, percent: float) -> float:
        """The nearest-rank percentile."""
        return self.samples[max(0, ceil(percent / 100 * len(self.samples)) - 1)]

    def to_json(self) -> dict[str, float]:
        """Seconds by name, and the number of samples."""
        names = {"p10": 10, "median": 50, "p90": 90, "p99": 99}
        percentiles = {name: self.percentile(percent) for name, percent in names.items()}
        return {"samples": len(self.samples), "minimum": self.minimum, **percentiles}


MOST_CALLS = 100_000
"""Of one measurement: more say no more."""


def measure(
    call: Callable[[], object], *, warm_up: int = 3, seconds: float = 1.0, least: int = 10, most: int = MOST_CALLS
) -> Timing:
    """Call again and again for `seconds`, at least `least` and at most `most` times; the warm-up does not count."""
    for _ in range(warm_up):
        call()
    samples = list[float]()
    end = time.perf_counter() + seconds
    while len(samples) < least or (len(samples) < most and time.perf_counter() < end):
        start = time.perf_counter()
        call()
        samples.append(time.perf_counter() - start)
    return summary(samples)


def summary(samples: Sequence[float]) -> Timing:
    """The timing of measured seconds, at least one."""
    return Timing(tuple(sorted(samples)))
