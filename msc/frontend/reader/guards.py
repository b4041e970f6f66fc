"""What a captured graph took from outside as constant: it serves only as long as all of that is as it was."""

# Values of user programs are of any type, and so is what they hold.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from types import CellType
from typing import Any

import numpy as np

from msc.frontend.parameter import Parameter
from msc.frontend.tensor import Tensor
from msc.support.wording import a

MISSING = object()
_SCALARS = (bool, int, float, complex, str, bytes, type(None))
_LARGEST = 10_000


@dataclass(frozen=True)
class Guard:
    """`read` gives now what was `seen` then; `what` names it for people."""

    what: str
    read: Callable[[], Any]
    seen: Any
    is_counted: bool = False
    """Whether `Changes` counts what changes it."""
    parameter: Parameter | None = None
    """The parameter whose value it is about."""

    def holds(self) -> bool:
        return same(self.seen, self.read())


@dataclass(frozen=True)
class Print:
    """What a value looks like from outside: of containers their items, of all else which object it is."""

    kind: type | None
    value: Any


def fingerprint(value: Any, depth: int = 0) -> Print:
    """What must be the same later for `value` to count as unchanged."""
    if isinstance(value, _SCALARS):
        return Print(type(value), value)
    if isinstance(value, Tensor):
        return Print(None, (value, MISSING if isinstance(value, Parameter) else value.content))
    if isinstance(value, np.ndarray):
        return Print(np.ndarray, (value, value.copy()))
    if depth < 8 and isinstance(value, list | tuple | deque) and len(value) < _LARGEST:
        return Print(type(value), (value, [fingerprint(item, depth + 1) for item in value]))
    if depth < 8 and isinstance(value, dict) and len(value) < _LARGEST:
        return Print(type(value), (value, {k: fingerprint(v, depth + 1) for k, v in list(value.items())}))
    if isinstance(value, set | frozenset):
        return Print(type(value), (value, frozenset(value)))
    return Print(None, (value, MISSING))


def same(seen: Print, now: Any) -> bool:
    """Whether `now` has the fingerprint `seen`."""
    if seen.kind is None:
        thing, content = seen.value
        return now is thing and (content is MISSING or now.content is content)
    if type(now) is not seen.kind:
        return False
    if isinstance(now, _SCALARS):
        return now is seen.value or now == seen.value
    thing, content = seen.value
    if not isinstance(now, tuple) and now is not thing:
        return False
    if isinstance(now, np.ndarray):
        return (
            now.shape == content.shape
            and now.dtype == content.dtype
            and np.array_equal(now, content, equal_nan=_nan(now))
        )
    if isinstance(now, dict):
        return list(now) == list(content) and all(same(p, now[k]) for k, p in content.items())
    if isinstance(now, set | frozenset):
        return frozenset(now) == content
    return len(now) == len(content) and all(map(same, content, now))


def _nan(array: Any) -> bool:
    return array.dtype.kind in "fc"


def is_cell(value: object) -> bool:
    """Whether a value is a Cell, which tells `Changes` when it changes."""
    return hasattr(type(value), "run_construct")


class Guards:
    """The guards of one capture, each place once."""

    def __init__(self) -> None:
        self._guards: dict[tuple[object, ...], Guard] = {}
        self._kept: list[object] = []

    def __iter__(self) -> Any:
        return iter(self._guards.values())

    def add(
        self, key: tuple[object, ...], what: str, read: Callable[[], Any], value: Any, *, is_counted: bool = False
    ) -> None:
        if key not in self._guards:
            self._guards[key] = Guard(what, read, fingerprint(value), is_counted)

    def drop(self, key: tuple[object, ...]) -> None:
        self._guards.pop(key, None)

    def variable(self, scope: dict[str, Any], name: str, value: Any) -> None:
        """A global variable of a module that has been read."""
        self.add((id(scope), name), f"the global '{name}'", lambda: scope.get(name, MISSING), value)

    def builtin(self, scope: dict[str, Any], name: str) -> None:
        """A global that does not exist, so that a builtin is meant."""
        self.add((id(scope), name), f"the global '{name}'", lambda: scope.get(name), None)

    def variable_of_outer(self, cell: CellType, name: str, value: Any) -> None:
        def read() -> Any:
            try:
                return cell.cell_contents
            except ValueError:
                return MISSING

        self.add((id(cell),), f"the variable '{name}' of an outer function", read, value)

    def attribute(self, owner: Any, name: str, value: Any) -> None:
        self._kept.append(owner)
        what = f"the attribute '{name}' of {a(type(owner).__name__)}"
        is_counted = is_cell(owner) and not isinstance(value, list | dict | set | np.ndarray)
        self.add((id(owner), "." + name), what, lambda: getattr(owner, name, MISSING), value, is_counted=is_counted)

    def cell(self, cell: Any) -> None:
        """A Cell of a library, whose code looks at whichever attributes it wants."""
        self._kept.append(cell)
        what = f"an attribute of {a(type(cell).__name__)}"
        state = cell.__dict__
        self.add((id(cell), "*"), what, lambda: tuple(state.items()), tuple(state.items()), is_counted=True)

    def content(self, container: Any, what: str) -> None:
        """A container whose items were looked at."""
        self._kept.append(container)
        self.add((id(container), "[]"), what, lambda: container, container)

    def parameter(self, parameter: Parameter) -> None:
        """A parameter whose value is a constant of the graph."""
        what = f"the value of parameter '{parameter.name}'"
        seen = Print(None, (parameter.content, MISSING))
        self._guards.setdefault((id(parameter), "="), Guard(what, lambda: parameter.content, seen, True, parameter))
