"""Python's garbage collector, out of the way of work that makes objects and hardly any garbage."""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def paused_collection() -> Generator[None]:
    """Reading and compiling make a great many objects in few cycles: pausing the collector saves up to a tenth."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def collect_young() -> None:
    """Do what ends a pause, sooner: look at what was made since it began, if that is enough for the collector to look.

    Does nothing where nothing is paused.
    """
    if not gc.isenabled() and 0 < gc.get_threshold()[0] < gc.get_count()[0]:
        gc.collect(0)
