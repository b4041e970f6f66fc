"""Tables of functions that the modules of a package declare, imported when somebody first looks into the table."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from functools import cache
from importlib import import_module
from typing import Any, Generic, TypeVar

KeyT = TypeVar("KeyT", bound=Hashable)
ValueT = TypeVar("ValueT", bound=Callable[..., Any])
FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])


@cache
def import_families(package: str, families: tuple[str, ...]) -> None:
    """Import modules of a package, once: tables are asked for each operation."""
    for family in families:
        import_module(f"{package}.{family}")


class Table(Generic[KeyT, ValueT]):
    """What the `families`, modules of a package, declare by key: functions, of which a key has one."""

    def __init__(self, what: str, package: str, *families: str) -> None:
        self._what, self._package, self._families = what, package, families
        self._declared: dict[KeyT, Any] = {}

    def __call__(self, *keys: KeyT) -> Callable[[FunctionT], FunctionT]:
        """Declare the function of keys. Raises ValueError for a key that has another one."""

        def declare(function: FunctionT) -> FunctionT:
            for key in keys:
                if self._declared.setdefault(key, function) is not function:
                    raise ValueError(f"{key} has two {self._what}")
            return function

        return declare

    def all(self) -> Mapping[KeyT, ValueT]:
        """Every function by its key."""
        import_families(self._package, self._families)
        return self._declared

    def get(self, key: KeyT) -> ValueT | None:
        """The function of a key, or None."""
        return self.all().get(key)
