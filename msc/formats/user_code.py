"""Code of the user's that msc runs: what it raises is told as an error at the user's line."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import msc
from msc.support.diagnostics import Diagnostic, Location, MscError

_PACKAGE = str(Path(msc.__file__).parent) + "/"


@dataclass(frozen=True)
class UserCode:
    """A block in which the user's code runs; what leaves it is an MscError with `code`, or a keyboard's interrupt."""

    code: str
    what: str

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: TracebackType | None) -> None:
        if error is None or isinstance(error, MscError | KeyboardInterrupt):
            return
        reason = str(error).partition("\n")[0][:200]
        message = f"{self.what}: {type(error).__name__}{': ' if reason else ''}{reason}"
        raise MscError(Diagnostic(self.code, message, _place(error, traceback))) from error


def _place(error: BaseException, traceback: TracebackType | None) -> Location | None:
    """The innermost line outside of msc and Python that an exception came through, or where the syntax is wrong."""
    if isinstance(error, SyntaxError) and error.lineno is not None and error.filename is not None:
        return Location(error.filename, error.lineno, error.offset or 1)
    found = None
    while traceback is not None:
        file = traceback.tb_frame.f_code.co_filename
        if not file.startswith((_PACKAGE, "<")):
            found = Location(file, traceback.tb_lineno, 1)
        traceback = traceback.tb_next
    return found
