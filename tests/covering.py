"""Which of many combinations tests run: enough that every two values of two parameters meet.

A fault depends on one value, or on two that meet, nearly always; all combinations of four parameters are many times as
many. MSC_TESTS=large in the environment takes them all.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import combinations, product
from typing import Any

LARGE = os.environ.get("MSC_TESTS") == "large"


def pairs(*parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Combinations of values, one of each parameter, in which every two values of two parameters occur together."""
    return covering(2, *parameters)


def each(*parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Combinations of values in which every value occurs: for tests that take seconds."""
    return covering(1, *parameters)


def covering(strength: int, *parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
    """The first combination that has the most groups of `strength` values that no earlier one has, until all occur."""
    every = list(product(*map(range, map(len, parameters))))
    wanted = {row: set(combinations(enumerate(row), min(strength, len(row)))) for row in every}
    open_groups = set[tuple[tuple[int, int], ...]]().union(*wanted.values())
    chosen = list[tuple[int, ...]]()
    while open_groups:
        best = max(every, key=lambda row: (len(wanted[row] & open_groups), _distance(row, chosen)))
        open_groups -= wanted[best]
        chosen.append(best)
    rows = every if LARGE else chosen
    return [tuple(values[i] for values, i in zip(parameters, row, strict=True)) for row in rows]


def _distance(row: tuple[int, ...], chosen: Sequence[tuple[int, ...]]) -> int:
    """How many pairs of values are in none of the chosen rows: those that cover as much are taken apart."""
    found = {pair for other in chosen for pair in combinations(enumerate(other), 2)}
    return len(set(combinations(enumerate(row), 2)) - found)
