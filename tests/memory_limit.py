"""A limit on the memory that code under test may take."""

from __future__ import annotations

import resource
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def memory_limit(size: int) -> Generator[None]:
    """Refuse this process, and what it starts, more than `size` bytes of addresses beyond those that it has now."""
    now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    before, hard = resource.getrlimit(resource.RLIMIT_AS)
    lowest = min((now + size, *(each for each in (before, hard) if each != resource.RLIM_INFINITY)))
    resource.setrlimit(resource.RLIMIT_AS, (lowest, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (before, hard))
