"""Signals that end a program of msc: Ctrl-C, SIGTERM and SIGHUP. What it began is undone, whatever it is doing.

A signal becomes an exception, so that blocks are left in order. Python only sees signals between its own instructions,
and drops exceptions in destructors; so a second thread waits, and ends the program by force where nothing happens.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import NoReturn

from msc.runtime.commands import end_all
from msc.support.temporary import remove_all_temporary

_NAMES = ("SIGINT", "SIGTERM", "SIGHUP")
_IN_C_SECONDS = 1.0
"""How long a call of compiled code may go on before it is cut off."""
_LEAVING_SECONDS = 6.0
"""How long leaving all blocks may take, which waits for compilers to end."""


class Ended(BaseException):
    """A signal asks the program to end."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextmanager
def ending_on_signals() -> Generator[None]:
    """Raise `Ended` in the block on the signals that are not ignored; what ends after it does so without a word."""
    watch = _Watch()
    for number in _numbers():
        signal.signal(number, watch.notice)
    watch.start()
    sys.unraisablehook = _quiet(sys.unraisablehook)
    try:
        yield
    finally:
        watch.left.set()


def end_by(number: int) -> int:
    """The exit code of a program that a signal ended; all but Ctrl-C end it the way it asked for."""
    if number == signal.SIGINT:
        say("interrupted")
        return 130
    say(f"ended by {signal.Signals(number).name}")
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).signal(number, 0)  # SIG_DFL; Python's own `signal` is for the main thread alone
        os.kill(os.getpid(), number)
    return 128 + number


def leave(number: int) -> NoReturn:
    """End the program at once: a thread may be in compiled code, whose memory Python would free under it at its end."""
    end_all()
    remove_all_temporary()
    os._exit(end_by(number))


def say(text: str) -> None:
    """A line to the standard error, if somebody reads it."""
    with suppress(OSError):
        os.write(2, f"{text}\n".encode("utf-8", "backslashreplace"))


def _numbers() -> list[signal.Signals]:
    """Those that are here and that whoever started the program did not have it ignore, as nohup does."""
    known = [getattr(signal, name) for name in _NAMES if hasattr(signal, name)]
    return [number for number in known if signal.getsignal(number) is not signal.SIG_IGN]


class _Watch:
    def __init__(self) -> None:
        self.left = threading.Event()
        self._noticed = threading.Event()
        self._number = 0

    def notice(self, number: int, frame: FrameType | None) -> None:
        """The handler: once is enough; who asks twice does not want to wait."""
        del frame
        if self._noticed.is_set():
            self._end(number)
        self._number = number
        self._noticed.set()
        if not self.left.is_set():
            raise Ended(number)
        self._end(number)

    def start(self) -> None:
        """Have a thread woken by every signal, at once: Python does that before it runs the handler."""
        with suppress(OSError, RuntimeError, ValueError):
            reader, writer = os.pipe()
            os.set_blocking(writer, False)
            threading.Thread(target=self._wait, args=(reader,), name="msc-signals", daemon=True).start()
            signal.set_wakeup_fd(writer, warn_on_full_buffer=False)

    def _wait(self, reader: int) -> None:
        while True:
            number = os.read(reader, 1)
            if not number:
                return
            if number[0] in _numbers() and not self.left.is_set():
                self._leave_time(number[0])

    def _leave_time(self, number: int) -> None:
        if not self._noticed.wait(_IN_C_SECONDS) or not self.left.wait(_LEAVING_SECONDS):
            self._end(number)

    def _end(self, number: int) -> None:
        leave(number)


def _quiet(hook: object) -> object:
    """An exception that a destructor drops is no traceback if it is ours: the thread that waits ends the program."""

    def call(dropped: sys.UnraisableHookArgs) -> None:
        if not isinstance(dropped.exc_value, Ended) and callable(hook):
            hook(dropped)

    return call
