"""The errors of importers: one MscError each, which names the node or operator where it can."""

from __future__ import annotations

from msc.support import escaping
from msc.support.diagnostics import DecidedByCall, Diagnostic, Location, MscError

NAME_LIMIT = 80
"""A name of a megabyte is cut; what is left still tells."""


def shown(name: str) -> str:
    """A name of the model's as messages show it: short, and on one line."""
    return escaping.shown(name, NAME_LIMIT)


class NeedsValues(DecidedByCall):
    """The values of some graph inputs decide a shape, so they must be given at import."""


class UnknownSize(DecidedByCall):
    """A size that the model leaves open must be given at import."""


def failure(code: str, message: str, *, at: Location | None = None, help: str | None = None) -> MscError:
    """An MscError of one diagnostic."""
    return MscError(Diagnostic(code, message, at, help=help))
