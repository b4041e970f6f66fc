"""The errors of the importer: one MscError each, which names the operator where it can."""

from __future__ import annotations

from msc.support import escaping
from msc.support.diagnostics import Diagnostic, Location, MscError

_NAME_LIMIT = 80


def shown(name: str) -> str:
    """A name of the model's as messages show it: short, and on one line."""
    return escaping.shown(name, _NAME_LIMIT)


def failure(code: str, message: str, *, at: Location | None = None, help: str | None = None) -> MscError:
    """An MscError of one diagnostic."""
    return MscError(Diagnostic(code, message, at, help=help))
