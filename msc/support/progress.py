"""What runs now and for how long, for a person who waits at a terminal: one line, which comes after two seconds."""

from __future__ import annotations

import os
import shutil
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import TextIO

from msc.support.escaping import shown

PATIENCE = 2.0
"""Seconds without a word."""
_PERIOD = 0.25
_ERASE = "\r\x1b[K"


class _Display:
    """The one line: `[  4.2 s] gk: schedule-kernels, 12 of 40`."""

    def __init__(self, stream: TextIO) -> None:
        self.step = ""
        self._stream = stream
        self._start = time.monotonic()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._show, name="msc-progress", daemon=True)
        self._thread.start()

    def _show(self) -> None:
        period = PATIENCE
        while not self._ended.wait(period):
            period = _PERIOD
            line = f"[{time.monotonic() - self._start:5.1f} s] {self.step}"
            self._write(f"{_ERASE}{line[: shutil.get_terminal_size().columns - 1]}")

    def end(self) -> None:
        self._ended.set()
        self._thread.join()
        if time.monotonic() - self._start >= PATIENCE:
            self._write(_ERASE)

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):  # the terminal has gone
            self._ended.set()


_display: _Display | None = None


@contextmanager
def progress(stream: TextIO | None = None) -> Generator[None]:
    """Show steps on a stream (stderr) while the block runs, if that is a terminal; inside another one, that one shows.

    `MSC_PROGRESS=0` in the environment turns it off.
    """
    global _display
    shown = _terminal(stream or sys.stderr)
    if _display is not None or shown is None or os.environ.get("MSC_PROGRESS") == "0":
        yield
        return
    _display = _Display(shown)
    try:
        yield
    finally:
        ended, _display = _display, None
        ended.end()


def step(text: str) -> None:
    """Say what begins now. Costs nothing where nobody looks."""
    if _display is not None:
        _display.step = shown(text)


def _terminal(stream: TextIO | None) -> TextIO | None:
    """The stream if it is a terminal that can erase a line; a process may have none, or have closed it."""
    if stream is None or stream.closed or not stream.isatty() or os.environ.get("TERM") == "dumb":
        return None
    return stream
