"""What all tests share."""

from __future__ import annotations

import gc
import signal

for _number in (signal.SIGINT, signal.SIGHUP):
    if signal.getsignal(_number) is signal.SIG_IGN:
        # as in the background of a shell, or under nohup: programs that tests start would ignore it too
        signal.signal(_number, signal.default_int_handler if _number == signal.SIGINT else signal.SIG_DFL)


def pytest_collection_finish() -> None:
    """The thousands of cases that are there by now stay to the end: the garbage collector need not visit them."""
    gc.collect()
    gc.freeze()
