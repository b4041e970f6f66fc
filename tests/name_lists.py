"""Options of the long checks: names of a table, separated by commas, and parts of what is to be done."""

from __future__ import annotations

from collections.abc import Callable, Collection

import click


def names_of(known: Collection[str]) -> Callable[[str], tuple[str, ...]]:
    """The type of an option whose names must be `known`: a check that is asked for and does not exist would pass."""

    def names(text: str) -> tuple[str, ...]:
        found = tuple(text.split(","))
        for name in found:
            if name not in known:
                raise click.BadParameter(f"no '{name}'; known: {', '.join(known)}")
        return found

    return names


def part(text: str) -> tuple[int, int]:
    """The type of an option K/N: of N equal parts the one numbered K, from 0."""
    number, _, count = text.partition("/")
    if not (number.isdecimal() and count.isdecimal() and int(number) < int(count)):
        raise click.BadParameter(f"'{text}' is no K/N with K below N")
    return int(number), int(count)
