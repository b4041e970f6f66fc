"""A limit on the time that code under test may take."""

from __future__ import annotations

import signal
from collections.abc import Generator
from contextlib import contextmanager


class OutOfTime(BaseException):
    """It takes too long; no handler of the code under test shall catch this."""


_SIGNALS = {signal.ITIMER_REAL: signal.SIGALRM, signal.ITIMER_VIRTUAL: signal.SIGVTALRM}


@contextmanager
def time_limit(seconds: float, clock: int = signal.ITIMER_REAL) -> Generator[None]:
    """Raise OutOfTime inside after so many seconds, of wall time or of CPU time (`signal.ITIMER_VIRTUAL`)."""

    def stop(*_: object) -> None:
        raise OutOfTime(f"more than {seconds} s")

    before = signal.signal(_SIGNALS[clock], stop)
    signal.setitimer(clock, seconds)
    try:
        yield
    finally:
        signal.setitimer(clock, 0)
        signal.signal(_SIGNALS[clock], before)
