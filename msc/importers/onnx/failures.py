"""The errors of the importer: one MscError each, which names the node where it can."""

from __future__ import annotations

from collections.abc import Iterable

from msc.support.diagnostics import Diagnostic, Location, MscError

NAME_LIMIT = 80
"""A name of a megabyte is cut; what is left still tells."""


def shown(name: str) -> str:
    """A name of the model's as messages show it: short, and on one line."""
    text = name if len(name) <= NAME_LIMIT else name[:NAME_LIMIT] + "..."
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


class NeedsValues(MscError):
    """The values of some graph inputs decide a shape, so they must be given at import."""

    def __init__(self, diagnostic: Diagnostic, inputs: Iterable[str]) -> None:
        super().__init__(diagnostic)
        self.inputs = frozenset(inputs)


def failure(code: str, message: str, *, at: Location | None = None, help: str | None = None) -> MscError:
    """An MscError of one diagnostic."""
    return MscError(Diagnostic(code, message, at, help=help))
