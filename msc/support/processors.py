"""The processors that this process may use, how many of them nobody else uses now, and the memory that it has."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

LOAD = Path("/proc/loadavg")
"""Where Linux tells, before the slash, how many threads run or wait for a processor."""

PAGES = Path("/proc/self/statm")
"""Where Linux tells how many pages of memory this process has."""


def detect_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return max(1, len(os.sched_getaffinity(0)))
    return os.cpu_count() or 1


def free_processors(own: int = 0) -> int:
    """The processors that this process may use and no other one uses now; at least one, its own.

    As many as `own` other processes are helpers of this one, whose processors count as free.
    """
    if not hasattr(os, "sched_getaffinity"):
        return 1
    others = max(0, _runnable() - 1 - own)
    return max(1, min(detect_cores(), (os.cpu_count() or 1) - others))


def _runnable() -> int:
    """How many threads of all processes run or could run, this one's included; none if the system does not tell."""
    with suppress(OSError, ValueError, IndexError):
        return int(LOAD.read_text("ascii").split()[3].partition("/")[0])
    return 0


def resident_bytes() -> int:
    """Bytes of memory that this process has; where the system does not tell, the most that it had."""
    import resource

    return int(PAGES.read_text("ascii").split()[1]) * resource.getpagesize() if PAGES.exists() else peak_bytes()


def peak_bytes() -> int:
    """The most bytes of memory that this process had."""
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
