"""Checkpoints that are written in the background: by one thread, in order; the program's end waits for it."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable
from queue import SimpleQueue

from msc.frontend.errors import ApiError
from msc.support import notices
from msc.support.diagnostics import Diagnostic, MscError


class BackgroundWriter:
    """Runs jobs one after the other in a thread of its own. A failure is told by the next job, or `finish`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._waiting = 0
        self._done = threading.Condition(self._lock)
        self._failed: list[Diagnostic] = []

    def add(self, job: Callable[[], None]) -> None:
        """Run a job later. Raises MSC0890 for one before it that failed."""
        self._raise()
        with self._lock:
            self._waiting += 1
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="msc-checkpoints", daemon=True)
                self._thread.start()
        self._jobs.put(job)

    def is_writing(self) -> bool:
        """Whether there are jobs that have not ended."""
        return bool(self._waiting)

    def finish(self) -> None:
        """Wait for all jobs. Raises MSC0890 for one that failed."""
        self.wait()
        self._raise()

    def wait(self) -> None:
        """Wait for all jobs."""
        with self._lock:
            self._done.wait_for(lambda: not self._waiting)

    def failures(self) -> list[Diagnostic]:
        """What went wrong and was not told yet."""
        with self._lock:
            found, self._failed = self._failed, []
        return found

    def _raise(self) -> None:
        for failure in self.failures():
            raise ApiError("MSC0890", f"a checkpoint was not written: {failure.message}", help=failure.help)

    def _run(self) -> None:
        while True:
            job = self._jobs.get()
            if job is None:
                return
            try:
                job()
            except MscError as error:
                with self._lock:
                    self._failed += error.diagnostics
            except (OSError, MemoryError, ValueError) as error:
                with self._lock:
                    self._failed.append(Diagnostic("MSC0890", str(error)))
            finally:
                with self._lock:
                    self._waiting -= 1
                    self._done.notify_all()


WRITER = BackgroundWriter()
"""Writes the checkpoints of this process."""


@atexit.register
def _at_exit() -> None:
    WRITER.wait()
    for failure in WRITER.failures():
        notices.warn(Diagnostic("MSC0890", f"a checkpoint was not written: {failure.message}", help=failure.help))
