"""Where the programs `msc` and `msc-opt` begin: ^C ends them with one line while their modules are being imported."""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType
from typing import NoReturn

_EXIT_INTERRUPTED = 130


def main() -> NoReturn:
    """The program `msc`."""
    _take_interrupts()
    _check_package()
    from msc.driver.cli import main as run

    run()


def main_opt() -> NoReturn:
    """The program `msc-opt`."""
    _take_interrupts()
    _check_package()
    from msc.driver.verbs.opt import main as run

    run()


def _check_package() -> None:
    """Leave where another package, as the index's `msc`, has written its `__init__.py` over that of msc."""
    import msc

    if getattr(msc, "DISTRIBUTION", None) != "msc-compiler":
        from msc.support.diagnostics import Diagnostic, render

        message = f"another package named 'msc' has written over msc: {msc.__file__}"
        advice = "python -m pip uninstall msc, then install msc-compiler again from its folder: python -m pip install ."
        told = render(Diagnostic("MSC0012", message, help=advice))
        os.write(2, f"{told}\n".encode())
        sys.exit(1)


def _take_interrupts() -> None:
    """Until `msc.driver.front` takes them; not where they are ignored, as by `nohup`."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)


def _leave(number: int, frame: FrameType | None) -> None:
    os.write(2, b"interrupted\n")
    os._exit(_EXIT_INTERRUPTED)
