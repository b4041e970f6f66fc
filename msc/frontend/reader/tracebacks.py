"""Tracebacks that show the lines of user code, not those of what reads it."""

from __future__ import annotations

import types
from collections.abc import Sequence

from msc.frontend.reader.signals import Refusal

Line = tuple[str, int, str]
"""The file, the line and the function."""


class ShownToUsers:
    """Gives an error that leaves the block the lines as its traceback that were being read when it came up."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if error is None or isinstance(error, Refusal):
            return
        lines: Sequence[Line] = getattr(error, "msc_frames", ())
        if hasattr(error, "msc_frames"):
            delattr(error, "msc_frames")
        made: types.TracebackType | None = None
        for line in reversed(lines):
            made = _traceback(line, made)
        raise error.with_traceback(made)


def _traceback(line: Line, following: types.TracebackType | None) -> types.TracebackType | None:
    """A traceback of one line: that of code that raises there."""
    file, number, name = line
    code = compile("\n" * (number - 1) + "raise StopIteration", file, "exec").replace(co_name=name)
    try:
        exec(code, {})
    except StopIteration as raised:
        own = raised.__traceback__
        inner = None if own is None else own.tb_next
        return None if inner is None else types.TracebackType(following, inner.tb_frame, inner.tb_lasti, number)
    return following
