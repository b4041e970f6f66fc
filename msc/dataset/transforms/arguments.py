"""What transforms check: MSC0874."""

# Values of user programs are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from typing import Any, NoReturn, cast

import numpy as np

from msc.dataset.values import Array
from msc.frontend.errors import ApiTypeError, ApiValueError
from msc.support.argument_values import described


def refuse(
    transform: str, what: str, value: object, wanted: str, *, is_type: bool = False, advice: str | None = None
) -> NoReturn:
    """Raise MSC0874 for an argument of a transform, or for what it is to transform."""
    kind = ApiTypeError if is_type else ApiValueError
    raise kind("MSC0874", f"{transform}: {what} is {described(value)}; it takes {wanted}", help=advice)


def number(transform: str, name: str, value: Any, low: float = -np.inf, high: float = np.inf) -> float:
    """A number within limits."""
    span = f"a number from {low:g} to {high:g}" if np.isfinite(high) else f"a number from {low:g} on"
    wanted = span if np.isfinite(low) else "a number"
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        refuse(transform, name, value, wanted, is_type=True)
    found = float(cast(Any, value))
    if not low <= found <= high:
        refuse(transform, name, value, wanted)
    return found


def probability(transform: str, value: Any) -> float:
    """A number from 0 to 1, called `prob`."""
    return number(transform, "prob", value, 0, 1)


def integer(transform: str, name: str, value: Any, least: int = 1) -> int:
    """An integer of `least` or more."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        refuse(transform, name, value, f"an integer of {least} or more", is_type=True)
    if int(value) < least:
        refuse(transform, name, value, f"an integer of {least} or more")
    return int(value)


def pair(transform: str, name: str, value: Any, least: int = 1) -> tuple[int, int]:
    """One integer for both, or a pair."""
    if isinstance(value, list | tuple):
        items = tuple(cast("list[Any]", value))
        if len(items) != 2:
            refuse(transform, name, str(items), "an integer or a pair of integers")
        return integer(transform, name, items[0], least), integer(transform, name, items[1], least)
    one = integer(transform, name, value, least)
    return one, one


def span(transform: str, name: str, value: Any, low: float = -np.inf, high: float = np.inf) -> tuple[float, float]:
    """A pair of numbers, the first one at most the second."""
    items = tuple(cast("list[Any]", value)) if isinstance(value, list | tuple) else ()
    if len(items) != 2:
        refuse(transform, name, value, "a pair of numbers", is_type=True)
    first, last = (number(transform, name, item, low, high) for item in items)
    if first > last:
        refuse(transform, name, str(items), "a pair whose first number is at most the second")
    return first, last


def around(transform: str, name: str, value: Any, centre: float, low: float = -np.inf) -> tuple[float, float]:
    """A pair of numbers; one number is a distance to both sides of a centre."""
    if isinstance(value, list | tuple):
        return span(transform, name, value, low)
    distance = number(transform, name, value, 0)
    return max(centre - distance, low), centre + distance


def array(transform: str, value: Any) -> Array:
    """What is to be transformed, as an array. Raises MSC0874."""
    found = np.asarray(value)
    if found.dtype.kind == "O":
        refuse(transform, "the value", value, "an array", is_type=True)
    return found
