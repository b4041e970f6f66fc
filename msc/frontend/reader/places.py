"""Places inside the arguments of a call: containers that it changes are the caller's, and other ones in every call."""

# Values of user programs are of any type, and so is what they hold.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from msc.frontend.reader.journal import Content, unchanged

Path: TypeAlias = tuple[Any, ...]
"""Indices, keys and names of fields, from the outside in."""


@dataclass(frozen=True)
class ArgumentPlace:
    """A container among the arguments, as a slot of whatever container a call has there."""

    path: Path

    def set(self, given: Any, value: Any) -> None:
        """Let the container of the call with arguments `given` hold what `value` holds."""
        container = followed(given, self.path)
        if dataclasses.is_dataclass(container):
            for name, item in value.items():
                object.__setattr__(container, name, item)
        else:
            Content(container).set(value)


@dataclass(frozen=True)
class Watched:
    """A container that stands for the caller's, and what it held at first."""

    place: ArgumentPlace
    container: Any
    before: Any

    def is_changed(self) -> bool:
        return not unchanged(self.before, state_of(self.container))


def followed(value: Any, path: Path) -> Any:
    """What stands at a path."""
    for step in path:
        value = getattr(value, step) if dataclasses.is_dataclass(value) else value[step]
    return value


def state_of(container: Any) -> Any:
    """What a container holds, as a container of its own."""
    return dict(vars(container)) if dataclasses.is_dataclass(container) else container.copy()


def watched(value: Any, path: Path = ()) -> Iterator[Watched]:
    """The containers in a structure that may change."""
    if isinstance(value, list | dict) or type(value) is set or _is_open(value):
        yield Watched(ArgumentPlace(path), value, state_of(value))
    for step, part in _parts(value):
        yield from watched(part, (*path, step))


def _is_open(value: object) -> bool:
    return dataclasses.is_dataclass(value) and not isinstance(value, type) and hasattr(value, "__dict__")


def _parts(value: Any) -> list[tuple[Any, Any]]:
    if isinstance(value, dict):
        return list(value.items())
    if isinstance(value, list | tuple):
        return list(enumerate(value))
    return list(vars(value).items()) if _is_open(value) else []


def are_shared(value: Any) -> bool:
    """Whether a container that may change stands at two places of a structure."""
    found = [id(w.container) for w in watched(value)]
    return len(found) != len(set(found))
