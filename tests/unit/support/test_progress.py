"""The line that tells a waiting person what runs: late, on terminals only, and gone at the end."""

from __future__ import annotations

import io
import time

import pytest

from msc.support import progress as module
from msc.support.progress import progress, step


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATIENCE", 0.02)
    monkeypatch.delenv("MSC_PROGRESS", raising=False)
    monkeypatch.setenv("TERM", "xterm")


def wait_for(stream: io.StringIO, text: str) -> None:
    end = time.monotonic() + 10
    while text not in stream.getvalue() and time.monotonic() < end:
        time.sleep(0.005)
    assert text in stream.getvalue()


def test_a_terminal_sees_the_step_and_an_empty_line_at_the_end() -> None:
    stream = Terminal()
    with progress(stream):
        step("gk: schedule-kernels")
        wait_for(stream, "s] gk: schedule-kernels")
    assert stream.getvalue().endswith("\r\x1b[K")


def test_inside_another_the_outer_one_shows() -> None:
    stream, inner = Terminal(), Terminal()
    with progress(stream):
        with progress(inner):
            step("inner")
            wait_for(stream, "inner")
        step("outer")
        wait_for(stream, "outer")
    assert not inner.getvalue()


def test_what_is_quick_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATIENCE", 60.0)
    stream = Terminal()
    with progress(stream):
        step("quick")
    assert not stream.getvalue()


@pytest.mark.parametrize("silenced", ["file", "MSC_PROGRESS", "TERM", "closed"])
def test_no_terminal_sees_nothing(silenced: str, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO() if silenced == "file" else Terminal()
    if silenced == "closed":
        stream.close()
    if silenced in ("MSC_PROGRESS", "TERM"):
        monkeypatch.setenv(silenced, "0" if silenced == "MSC_PROGRESS" else "dumb")
    with progress(stream):
        step("unseen")
        time.sleep(0.1)
    assert stream.closed or not stream.getvalue()


def test_a_terminal_that_goes_away_is_no_error() -> None:
    stream = Terminal()
    with progress(stream):
        stream.close()
        time.sleep(0.1)
