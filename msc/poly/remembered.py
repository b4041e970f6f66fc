"""Results that are computed once for a value, and cached for the lifetime of the value."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar, cast

K = TypeVar("K")
T = TypeVar("T")

_SLOT = "_remembered"
"""The attribute of a value that holds them. They go by identity: comparing models takes longer than most questions."""


def remembered(function: Callable[[K], T]) -> Callable[[K], T]:
    """Compute a function once for each object. The object must not change: a frozen dataclass without slots."""

    @wraps(function)
    def known(value: K) -> T:
        results = cast("dict[object, T]", vars(value).setdefault(_SLOT, {}))
        if known not in results:
            results[known] = function(value)
        return results[known]

    return known
