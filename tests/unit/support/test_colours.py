"""Diagnostics in colour: the words stay, and only a terminal gets them."""

from __future__ import annotations

import io
import re

import pytest

from msc.support.colours import coloured, for_stream
from msc.support.diagnostics import Diagnostic, Location, render
from tests.unit.support.test_progress import Terminal

TEXT = render(
    Diagnostic("MSC0201", "shapes differ", Location("m.mir", 3, 5), "  %y = ms.add %a, %b", 2, ("a note",), "an advice")
)


def test_colours_change_no_word() -> None:
    painted = coloured(TEXT)
    assert painted != TEXT
    assert re.sub(r"\x1b\[[0-9;]*m", "", painted) == TEXT


def test_carets_are_red_and_the_source_line_is_plain() -> None:
    lines = coloured(TEXT).split("\n")
    assert any(line.endswith("\x1b[1;31m^^\x1b[0m") for line in lines)
    assert any(line.endswith("  %y = ms.add %a, %b") for line in lines)


def test_only_a_terminal_gets_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert for_stream(TEXT, io.StringIO()) == TEXT
    assert for_stream(TEXT, Terminal()) == coloured(TEXT)
    monkeypatch.setenv("NO_COLOR", "1")
    assert for_stream(TEXT, Terminal()) == TEXT
