"""Colours of a diagnostic on a terminal, as rustc has them: the words stay what they are anywhere else."""

from __future__ import annotations

import os
import re
import sys
from typing import TextIO

_YELLOW = "\x1b[1;33m"
_BOLD, _RED, _BLUE, _GREEN, _CYAN, _OFF = "\x1b[1m", "\x1b[1;31m", "\x1b[1;34m", "\x1b[1;32m", "\x1b[1;36m", "\x1b[0m"
_RULES: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"^(error\[MSC\d+\])(: .*)$"), rf"{_RED}\1{_OFF}{_BOLD}\2{_OFF}"),
    (re.compile(r"^(warning\[MSC\d+\])(: .*)$"), rf"{_YELLOW}\1{_OFF}{_BOLD}\2{_OFF}"),
    (re.compile(r"^( +-->)( .*)$"), rf"{_BLUE}\1{_OFF}\2"),
    (re.compile(r"^( *\d* *\|)( *)(\^+)$"), rf"{_BLUE}\1{_OFF}\2{_RED}\3{_OFF}"),
    (re.compile(r"^( *\d* *\|)(.*)$"), rf"{_BLUE}\1{_OFF}\2"),
    (re.compile(r"^(note):"), rf"{_CYAN}\1{_OFF}:"),
    (re.compile(r"^(help):"), rf"{_GREEN}\1{_OFF}:"),
)


def for_stream(text: str, stream: TextIO | None = None) -> str:
    """A rendered diagnostic as a stream (stderr) shows it: with colours on a terminal, unless NO_COLOR is set."""
    shown = stream or sys.stderr
    wanted = (
        shown is not None and shown.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    )
    return coloured(text) if wanted else text


def coloured(text: str) -> str:
    """A rendered diagnostic with colours."""
    return "\n".join(_line(line) for line in text.split("\n"))


def _line(line: str) -> str:
    for pattern, replacement in _RULES:
        painted, count = pattern.subn(replacement, line)
        if count:
            return painted
    return line
