"""Objects by name: msc's own, and those that installed packages bring through an entry point."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, entry_points
from typing import Generic, TypeVar

from msc.support.diagnostics import Diagnostic, MscError, did_you_mean

T = TypeVar("T")

_OF_A_BROKEN_MODULE = (
    *(ImportError, SyntaxError, NameError, AttributeError, TypeError, ValueError, LookupError),
    *(ArithmeticError, AssertionError, OSError, RuntimeError),
)
"""What the import of somebody else's module raises by mistake."""


@dataclass
class Plugins(Generic[T]):
    """The objects of one entry-point group.

    `own` has msc's by name, as entry points say them: "package.module:Class". A class is a subclass of `base()` whose
    `name` is that of the entry point, and has the attributes `given`. `what` is the word for one in messages, which
    have `code`; `page` tells how to write one. Other packages' are looked for only when another name is asked for.
    """

    group: str
    what: str
    code: str
    own: Mapping[str, str]
    base: Callable[[], type[T]]
    given: tuple[str, ...]
    page: str
    _loaded: dict[str, T] = field(default_factory=dict[str, T])
    _points: dict[str, EntryPoint] | None = None

    def names(self) -> tuple[str, ...]:
        """All names, msc's own first."""
        return (*self.own, *sorted(self._installed().keys() - self.own.keys()))

    def find(self, name: str, word: str = "") -> T:
        """The object of a name. Raises MscError where there is none, or the package that brings it is broken."""
        if name not in self._loaded:
            self._loaded[name] = self._made(name, word or self.what)
        return self._loaded[name]

    def found(self) -> tuple[T, ...]:
        """All that can be loaded: a broken package of somebody else must not stop the others."""
        found = list[T]()
        for name in self.names():
            with suppress(MscError):
                found.append(self.find(name))
        return tuple(found)

    def forget(self) -> None:
        """Look for packages anew."""
        self._loaded.clear()
        self._points = None

    def _made(self, name: str, word: str) -> T:
        own = self.own.get(name)
        point = EntryPoint(name, own, self.group) if own is not None else self._installed().get(name)
        if point is None:
            known = self.names()
            all_ = f"the {word} is {known[0]}" if len(known) == 1 else f"the {word}s are {', '.join(known)}"
            raise self._error(f"there is no {word} '{name}'", did_you_mean(name, known) or all_)
        named = f"the {self.what} '{name}' ({point.value})"
        try:
            kind: object = point.load()
        except _OF_A_BROKEN_MODULE as error:
            raise self._error(f"{named} cannot be loaded: {error or type(error).__name__}") from error
        base = self.base()
        if not isinstance(kind, type) or not issubclass(kind, base) or getattr(kind, "name", None) != name:
            raise self._error(f"{named} is not a subclass of {base.__name__} of that name")
        abstract: frozenset[str] = getattr(kind, "__abstractmethods__", frozenset())
        missing = sorted({*abstract, *(each for each in self.given if not hasattr(kind, each))})
        if missing:
            help_ = f"{self.page} lists what a {self.what} defines"
            raise self._error(f"{named} does not define {', '.join(missing)}", help_)
        return kind()

    def _error(self, message: str, help_: str | None = None) -> MscError:
        return MscError(Diagnostic(self.code, message, help=help_))

    def _installed(self) -> Mapping[str, EntryPoint]:
        if self._points is None:
            self._points = {point.name: point for point in entry_points(group=self.group)}
        return self._points
