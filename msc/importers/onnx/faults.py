"""Whatever goes wrong in a node becomes an error that names it."""

from __future__ import annotations

from typing import Self

from xdsl.utils.exceptions import VerifyException

from msc.ir.errors import code_of, help_of
from msc.support.diagnostics import Diagnostic, Location, MscError


class Faults:
    """A context that names the node in the errors of the operations it becomes.

    A damaged model asks for things that no importer foresees (an axis of 10^18, a table of a terabyte): NumPy then
    raises exceptions of any kind, which are the model's mistakes and not ours.
    """

    def __init__(self, label: str, place: Location) -> None:
        self._label = label
        self._place = place

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, VerifyException):
            message = f"{self._label}: {error}"
            raise MscError(Diagnostic(code_of(error), message, self._place, help=help_of(error))) from error
        if isinstance(error, Exception) and not isinstance(error, MscError):
            reason = str(error).partition("\n")[0][:200]
            message = f"{self._label} cannot be imported: {type(error).__name__}{': ' if reason else ''}{reason}"
            raise MscError(Diagnostic("MSC0790", message, self._place)) from error
