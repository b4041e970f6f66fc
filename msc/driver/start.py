"""Where the programs `msc` and `msc-opt` begin: ^C ends them with one line while their modules are being imported."""

from __future__ import annotations

import os
import signal
from types import FrameType
from typing import NoReturn

_EXIT_INTERRUPTED = 130


def main() -> NoReturn:
    """The program `msc`."""
    _take_interrupts()
    from msc.driver.cli import main as run

    run()


def main_opt() -> NoReturn:
    """The program `msc-opt`."""
    _take_interrupts()
    from msc.driver.verbs.opt import main as run

    run()


def _take_interrupts() -> None:
    """Until `msc.driver.front` takes them; not where they are ignored, as by `nohup`."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)


def _leave(number: int, frame: FrameType | None) -> None:
    os.write(2, b"interrupted\n")
    os._exit(_EXIT_INTERRUPTED)
