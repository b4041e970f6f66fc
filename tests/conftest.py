"""What all tests share."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("msc", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("msc")  # no test asserts a time: machines that run it may be busy

gc.set_threshold(20_000)  # of 700 new objects, as by default, a test still needs nearly all

for _number in (signal.SIGINT, signal.SIGHUP):
    if signal.getsignal(_number) is signal.SIG_IGN:
        # as in the background of a shell, or under nohup: programs that tests start would ignore it too
        signal.signal(_number, signal.default_int_handler if _number == signal.SIGINT else signal.SIG_DFL)


def pytest_collection_finish() -> None:
    """The thousands of cases that are there by now stay to the end: the garbage collector need not visit them."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _working_folder_is_kept() -> Iterator[None]:
    """A test that leaves another working folder fails itself, not one that happens to run after it."""
    folder = os.getcwd()
    yield
    left = os.getcwd()
    os.chdir(folder)
    assert left == folder
