"""Programs that are run and waited for, several at once; whoever leaves early ends them."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Self
from weakref import WeakSet

_GRACE = 2
"""Seconds that a program has to remove its temporary files."""


_STARTED = WeakSet[subprocess.Popen[str]]()
"""Every command that somebody still holds."""


class CommandStopped(Exception):
    """The command was ended, or not begun, since the block that it was for was left."""


class Commands:
    """Commands that threads run within a block. If an exception ends the block, it ends them and what they started."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._running = set[subprocess.Popen[str]]()
        self._stopped = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            with self._lock:
                self._stopped = True
                for process in self._running:
                    _end(process)

    def run(
        self, command: Sequence[str], folder: Path | None, timeout: float, text: str = ""
    ) -> subprocess.CompletedProcess[str]:
        """Run a command with `text` as its input. Raises OSError, TimeoutExpired, and Stopped."""
        process = self._start(command, folder)
        try:
            output, errors = process.communicate(text, timeout)
        finally:
            _end(process)
            with self._lock:
                self._running.remove(process)
        if self._stopped:
            raise CommandStopped
        return subprocess.CompletedProcess(process.args, process.returncode, output, errors)

    def _start(self, command: Sequence[str], folder: Path | None) -> subprocess.Popen[str]:
        """No shell, no terminal, messages in English; a process group, since compilers start others."""
        with self._lock:
            if self._stopped:
                raise CommandStopped
            process = subprocess.Popen(
                list(command),
                cwd=folder,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                env={**os.environ, "LC_ALL": "C"},
                process_group=0,
            )
            self._running.add(process)
            _STARTED.add(process)
            return process


def run_command(
    command: Sequence[str], folder: Path | None, timeout: float, text: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run one command. Raises OSError and TimeoutExpired; whatever else leaves it ends the command.

    Another thread starts the command: a signal raises its exception in the main thread, and one that interrupts `Popen`
    would leave a process that nobody knows.
    """
    with ThreadPoolExecutor(1) as pool, Commands() as commands:
        return pool.submit(commands.run, command, folder, timeout, text).result()


def end_all() -> None:
    """End every command at once, for a program that ends by force; it leaves none behind that only init can reap."""
    running = [process for process in list(_STARTED) if process.returncode is None]
    for process in running:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    for process in running:
        with suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE)


def _end(process: subprocess.Popen[str]) -> None:
    """End a process and all of its group, if it has not ended: politely, then at once."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, number)
            with suppress(subprocess.TimeoutExpired):
                process.wait(_GRACE)
