"""Work shared with forked processes: the same results, sooner, where more than one processor is free.

Nothing depends on these processes. A job that has no result, because its process failed or was ended, is left to the
caller, who does it again: what goes wrong goes wrong there, in the order and with the words of a single process.
"""

from __future__ import annotations

import json
import mmap
import os
import signal
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import IO, ClassVar, NoReturn, Self, TypeAlias, TypeVar, cast

from msc.support.diagnostics import MscError
from msc.support.processors import free_processors

J = TypeVar("J")

Lines: TypeAlias = list[list[str]]
"""What a job results in: texts."""

_JOBS = 4
"""For each process, unless they are large: forking a compiler takes as long as a small job."""
_MOST = 4
"""Processes: each has to make for itself what the jobs have in common."""
_LOOK_SECONDS = 0.05
"""Between looks of a process whether it is to stand aside."""
_NUMBER = 4
"""Bytes of a job's number in the pipe. A read takes whole numbers, so no two processes take the same one."""

_IN_FRONT = mmap.mmap(-1, 1)
"""Whether `results` has jobs for all processors: one byte, which forked processes see too."""


def results(
    function: Callable[[J], Lines], jobs: Sequence[J], among: Iterable[int] | None = None, each: int = 0
) -> dict[int, Lines]:
    """`function` of jobs, by their positions, as far as they were done without an error.

    What it returns must depend on the job alone; what else it changes is lost. Each process has `each` jobs at least,
    if that is given. Only jobs at the positions `among` are done, if these are given: other processes begin with the
    first ones while the caller finds the next. In a program with threads of its own, or if no other processor is free,
    nothing is done.
    """
    others = min(_processors(), _MOST, len(jobs) // (each or _JOBS)) - 1
    if others < 1 or not _may_fork():
        return {}
    with _in_front(), _Numbers() as numbers, _Helpers() as helpers:
        for _ in range(others):
            helpers.fork(lambda out: _work(function, jobs, numbers, out))
        numbers.give(range(len(jobs)) if among is None else among)
        found = dict[int, Lines]()
        for job in numbers.taken():
            with suppress(MscError):
                found[job] = function(jobs[job])
        return found | helpers.results()


@contextmanager
def begun(function: Callable[[], Lines]) -> Generator[Callable[[], Lines | None] | None]:
    """`function`, in a process of its own while the block runs: yields what waits for its result, once.

    That is None where it had an error. Yields None where nothing is done (`results`). The process stands aside while
    `results` has jobs, for which somebody waits.
    """
    with _Helpers() as helpers:
        is_begun = _processors() > 1 and _may_fork() and helpers.fork(lambda out: _work_aside(function, out))
        yield (lambda: helpers.results().get(0)) if is_begun else None


@contextmanager
def _in_front() -> Generator[None]:
    """While the block runs, what was `begun` stands aside."""
    _IN_FRONT[0] = 1
    try:
        yield
    finally:
        _IN_FRONT[0] = 0


def _processors() -> int:
    """Those that are free: on busy ones processes take turns, and what each makes for itself is in vain."""
    return free_processors(own=_Helpers.count)


def _may_fork() -> bool:
    """Whether no thread but msc's own may hold a lock that nobody would release in the forked process."""
    current = threading.current_thread()
    return current is threading.main_thread() and all(
        thread is current or thread.name.startswith("msc-") for thread in threading.enumerate()
    )


class _Numbers:
    """A pipe of numbers, each of which is taken once, by whichever process comes first."""

    def __init__(self) -> None:
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._writer, False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()
        os.close(self._reader)

    def give(self, numbers: Iterable[int]) -> None:
        """Put them into the pipe. The job of one that finds no room is done by the caller."""
        for number in numbers:
            with suppress(BlockingIOError):
                os.write(self._writer, number.to_bytes(_NUMBER, sys.byteorder))

    def taken(self) -> Generator[int]:
        """The numbers that this process takes, until no process gives any more; it gives none itself."""
        self._end()
        while taken := os.read(self._reader, _NUMBER):
            yield int.from_bytes(taken, sys.byteorder)

    def _end(self) -> None:
        if self._writer >= 0:
            os.close(self._writer)
            self._writer = -1


def _work(function: Callable[[J], Lines], jobs: Sequence[J], numbers: _Numbers, out: IO[str]) -> None:
    """In a forked process: do jobs while there are any and somebody waits for them."""
    parent = os.getppid()
    for job in numbers.taken():
        if os.getppid() != parent:
            return
        _tell(job, function(jobs[job]), out)


def _work_aside(function: Callable[[], Lines], out: IO[str]) -> None:
    """In a forked process: call `function`, but at no time at which others go in front."""
    parent = os.getppid()

    def stand_aside(number: int, frame: FrameType | None) -> None:
        del number, frame
        while _IN_FRONT[0] and os.getppid() == parent:
            time.sleep(_LOOK_SECONDS)

    signal.signal(signal.SIGALRM, stand_aside)
    signal.setitimer(signal.ITIMER_REAL, _LOOK_SECONDS, _LOOK_SECONDS)
    _tell(0, function(), out)


def _tell(job: int, texts: Lines, out: IO[str]) -> None:
    print(json.dumps([job, texts]), file=out, flush=True)


class _Helpers:
    """Forked processes with the files of their results. Whoever leaves early ends them."""

    count: ClassVar[int] = 0
    """How many of this process there are, those that ended and were not waited for included."""

    def __init__(self) -> None:
        self._running: dict[int, IO[str]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process, out in self._running.items():
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
            _wait(process)
            _Helpers.count -= 1
            out.close()

    def fork(self, work: Callable[[IO[str]], None]) -> bool:
        """Whether there is another process, which does `work`: the system may have no room for one."""
        before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            with suppress(OSError):
                out = os.fdopen(_unnamed_file(), "w+", encoding="utf-8")
                process = os.fork()
                if process == 0:
                    _run(work, out)
                self._running[process] = out
                _Helpers.count += 1
                return True
            return False
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def results(self) -> dict[int, Lines]:
        """What all of them did, when they have ended."""
        found = dict[int, Lines]()
        for process, out in list(self._running.items()):
            _wait(process)
            _Helpers.count -= 1
            del self._running[process]
            with out:
                out.seek(0)
                found |= dict(_result(line) for line in out if line.endswith("\n"))
        return found


def _unnamed_file() -> int:
    """A file that goes with its last descriptor. Raises OSError."""
    descriptor, path = tempfile.mkstemp(prefix="msc-")
    os.unlink(path)
    return descriptor


def _result(line: str) -> tuple[int, Lines]:
    job, texts = cast("tuple[int, Lines]", json.loads(line))
    return job, texts


def _wait(process: int) -> None:
    with suppress(ChildProcessError):  # where somebody has the system forget children
        os.waitpid(process, 0)


def _run(work: Callable[[IO[str]], None], out: IO[str]) -> NoReturn:
    """In the forked process: work, and end without a word, whatever happens."""
    try:
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        warnings.simplefilter("error")
        work(out)
    finally:
        os._exit(0)
