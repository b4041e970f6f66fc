"""What a captured graph took from outside as constant: it serves only as long as all of that is as it was."""

# Values of user programs are of any type, and so is what they hold.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from types import CellType, FunctionType
from typing import Any

from msc.frontend.parameter import Parameter
from msc.frontend.reader.kinds import SameElements, SameIdentity, SameItems, Seen, fingerprint, is_lasting
from msc.support.wording import a

MISSING = object()


@dataclass(frozen=True)
class Guard:
    """`read` gives now what was `seen` then; `what` names it for people."""

    what: str
    read: Callable[[], Any]
    seen: Seen
    is_counted: bool = False
    """Whether `Changes` counts what changes it."""
    parameter: Parameter | None = None
    """The parameter whose value it is about."""

    def holds(self) -> bool:
        """Whether it is as it was."""
        return self.seen.holds(self.read())


def is_cell(value: object) -> bool:
    """Whether a value is a Cell, which tells `Changes` when it changes."""
    return hasattr(type(value), "run_construct")


def in_class(kind: Any, name: str) -> Any:
    """What a class, or one that it is derived from, defines under a name, as it stands there."""
    return next((vars(base)[name] for base in kind.__mro__ if name in vars(base)), MISSING)


class Guards:
    """The guards of one capture, each place once."""

    def __init__(self) -> None:
        self._guards: dict[tuple[object, ...], Guard] = {}
        self._kept: list[object] = []
        """What the keys name by identity."""

    def __iter__(self) -> Any:
        return iter(self._guards.values())

    def add(
        self,
        key: tuple[object, ...],
        what: str,
        read: Callable[[], Any],
        seen: Seen,
        *,
        kept: object = None,
        is_counted: bool = False,
    ) -> None:
        if key not in self._guards:
            self._guards[key] = Guard(what, read, seen, is_counted)
            self._kept.append(kept)

    def drop(self, key: tuple[object, ...]) -> None:
        self._guards.pop(key, None)

    def variable(self, scope: dict[str, Any], name: str, value: Any) -> None:
        """A global variable of a module that has been read."""
        read = partial(scope.get, name, MISSING)
        self.add((id(scope), name), f"the global '{name}'", read, fingerprint(value), kept=scope)

    def builtin(self, scope: dict[str, Any], namespace: dict[str, Any], name: str) -> None:
        """A global that does not exist, so that a builtin is meant; or does not exist either."""

        def read() -> Any:
            return scope.get(name, namespace.get(name, MISSING))

        self.add((id(scope), name), f"the global '{name}'", read, SameIdentity(read()), kept=scope)

    def variable_of_outer(self, cell: CellType, name: str, value: Any) -> None:
        def read() -> Any:
            try:
                return cell.cell_contents
            except ValueError:
                return MISSING

        seen = SameIdentity(MISSING) if value is MISSING else fingerprint(value)
        self.add((id(cell),), f"the variable '{name}' of an outer function", read, seen, kept=cell)

    def attribute(self, owner: Any, name: str, value: Any, *, is_counted: bool = False) -> None:
        """An attribute that has been read; `value` is MISSING if there is none."""
        what = f"the attribute '{name}' of {a(type(owner).__name__)}"
        seen = fingerprint(value)
        is_counted = is_counted and is_lasting(seen)
        read = partial(getattr, owner, name, MISSING)
        self.add((id(owner), "." + name), what, read, seen, kept=owner, is_counted=is_counted)

    def of_class(self, kind: type, name: str, found: Any, *, is_counted: bool = False) -> None:
        """What a class, or one that it is derived from, defines under a name."""
        what = f"the attribute '{name}' of the class {kind.__name__}"
        plain = found is MISSING or isinstance(found, FunctionType | property)
        read = partial(getattr, kind, name, MISSING) if plain else partial(in_class, kind, name)
        self.add((id(kind), "." + name), what, read, fingerprint(found), kept=kind, is_counted=is_counted)

    def is_instance(self, value: Any, kind: Any) -> None:
        """Whether an object is one of a class that decides that itself, as one does that others are registered with."""
        what = f"whether {a(type(value).__name__)} is {a(kind.__name__)}"
        read = partial(isinstance, value, kind)
        self.add((id(value), id(kind)), what, read, SameIdentity(read()), kept=(value, kind))

    def order_of(self, kind: type) -> None:
        """The classes that a class is derived from, in their order."""
        what = f"the bases of the class {kind.__name__}"
        self.add((id(kind), "mro"), what, partial(getattr, kind, "__mro__"), fingerprint(kind.__mro__), kept=kind)

    def class_of(self, value: Any) -> None:
        """The class of an object."""
        what = f"the class of {a(type(value).__name__)}"
        is_counted = is_cell(value)
        self.add(
            (id(value), "class"),
            what,
            partial(type, value),
            SameIdentity(type(value)),
            kept=value,
            is_counted=is_counted,
        )

    def function(self, function: FunctionType) -> None:
        """A function that has been read: its code and the defaults of its arguments."""

        def read() -> Any:
            return (function.__code__, function.__defaults__, function.__kwdefaults__)

        what = f"the code or a default of the function '{function.__name__}'"
        self.add((id(function), "code"), what, read, fingerprint(read()), kept=function)

    def partial(self, function: Any) -> None:
        """A `functools.partial` that was called."""

        def read() -> Any:
            return (function.func, function.args, function.keywords)

        self.add((id(function), "partial"), "what a functools.partial holds", read, fingerprint(read()), kept=function)

    def hooks(self, cell: Any) -> None:
        """What a call of a Cell runs."""
        what = f"'construct' or a hook of {a(type(cell).__name__)}"
        self.add((id(cell), "()"), what, cell.what_runs, fingerprint(cell.what_runs()), kept=cell, is_counted=True)

    def cell(self, cell: Any) -> None:
        """A Cell of a library, whose code looks at whichever attributes it wants."""
        what = f"an attribute of {a(type(cell).__name__)}"
        for name, value in list(cell.__dict__.items()):
            if not is_lasting(fingerprint(value)):
                self.attribute(cell, name, value)
        state = cell.what_it_has()
        self.add((id(cell), "*"), what, cell.what_it_has, flat(state), kept=cell, is_counted=True)

    def content(self, container: Any, before: Any = None) -> None:
        """A container whose items were looked at; `before` is what it held when the call began, if not this."""
        what = f"what {a(type(container).__name__)} holds"
        seen = fingerprint(container if before is None else before)
        if isinstance(seen, SameItems | SameElements):
            seen = replace(seen, thing=container)
        self.add((id(container), "[]"), what, lambda: container, seen, kept=container)

    def parameter(self, parameter: Parameter) -> None:
        """A parameter whose value is a constant of the graph."""
        what = f"the value of parameter '{parameter.name}'"
        seen = SameIdentity(parameter.content)
        self._guards.setdefault((id(parameter), "="), Guard(what, lambda: parameter.content, seen, True, parameter))


def flat(items: tuple[Any, ...]) -> Seen:
    """A tuple of the same objects and scalars, without what those hold."""
    return SameItems(items, None, items, ())
