"""How many processors there are for this process, and how many of them nobody else uses at the moment."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

LOAD = Path("/proc/loadavg")
"""Where Linux tells, before the slash, how many threads run or wait for a processor."""


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
