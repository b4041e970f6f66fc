"""Warnings: what users should know although the work goes on. They have a code, and go to the standard error."""

from __future__ import annotations

import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager

from msc.support.colours import for_stream
from msc.support.diagnostics import Diagnostic, render

_taken: list[list[Diagnostic]] = []


def warn(*diagnostics: Diagnostic) -> None:
    """Tell of something: whoever collects warnings gets it, else it is printed."""
    for diagnostic in diagnostics:
        if _taken:
            _taken[-1].append(diagnostic)
        elif sys.stderr is not None:
            print(for_stream(render(diagnostic, "warning")), file=sys.stderr)


@contextmanager
def collected() -> Generator[Sequence[Diagnostic]]:
    """The warnings of the block, which are not printed."""
    found: list[Diagnostic] = []
    _taken.append(found)
    try:
        yield found
    finally:
        _taken.remove(found)
