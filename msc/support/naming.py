"""Names of a model made into names of ours: the model's own are never trusted to be short, unique or harmless."""

from __future__ import annotations

import re
from collections.abc import Container

NAME_LENGTH = 96

_FOREIGN = re.compile(r"[^A-Za-z0-9_.]+")

_VALUE_NAME = re.compile(r"[A-Za-z_$.-][A-Za-z0-9_$.-]{0,95}")


def identifier(name: str, fallback: str = "value") -> str:
    """A name of letters, digits, `_` and `.`, which starts with a letter or `_` and is not long."""
    text = _FOREIGN.sub("_", name[: 4 * NAME_LENGTH]).strip(".")[:NAME_LENGTH]
    if not text.strip("_."):
        return fallback
    return text if not text[0].isdigit() else f"_{text}"


class Names:
    """Gives each name once."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._next: dict[str, int] = {}

    def symbol(self, name: str) -> str:
        """An identifier made of `name` that has not been given before."""
        base = identifier(name)
        unique = base
        while unique in self._taken:
            self._next[base] = self._next.get(base, 0) + 1
            unique = f"{base}_{self._next[base]}"
        self._taken.add(unique)
        return unique


def value_hint(name: str) -> str | None:
    """A name for an SSA value of the text, or None if nothing is left of it."""
    text = identifier(name, "").replace(".", "_").strip("_")
    return text if text and not text[0].isdigit() else None


def valid_hint(name: str | None) -> str | None:
    """`name` if the text of the IR can have it for a value, or else what is left of it."""
    return name if name is None or _VALUE_NAME.fullmatch(name) else value_hint(name)


def unique(name: str, taken: Container[str]) -> str:
    """`name`, or `name_2`, `name_3`, ... : the first that is not taken."""
    candidate, number = name, 2
    while candidate in taken:
        candidate, number = f"{name}_{number}", number + 1
    return candidate
