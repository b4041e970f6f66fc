"""`mutable` and `Symbol`: numbers that a compiled function takes at run time, not as constants, and sizes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from msc.frontend.errors import ApiTypeError, ApiValueError
from msc.frontend.settings import unused


class MutableInt(int):
    """An int that may differ between calls of one compiled function."""

    @property
    def value(self) -> int:
        return int(self)


class MutableFloat(float):
    """A float that may differ between calls of one compiled function."""

    @property
    def value(self) -> float:
        return float(self)


def mutable(input_data: Any, dynamic_len: bool = False) -> Any:
    """The value, whose numbers, in tuples, lists and dicts too, are no constants of a compiled function."""
    unused("mutable", dynamic_len=dynamic_len)
    match input_data:
        case bool():
            return input_data
        case int():
            return MutableInt(input_data)
        case float():
            return MutableFloat(input_data)
        case tuple() | list():
            items = cast(Sequence[Any], input_data)
            return type(items)(map(mutable, items))  # pyright: ignore[reportCallIssue]
        case dict():
            table: dict[Any, Any] = dict(cast(Any, input_data))
            return {key: mutable(item) for key, item in table.items()}
        case _:
            return input_data


class Symbol:
    """A size that calls decide, `Symbol(min=1, max=64)`, in the shape of a tensor that describes an argument.

    A `max` of 0 is no limit. Graphs serve all sizes between, whatever `divisor` and `remainder` say. Raises MSC0803.
    """

    def __init__(
        self,
        max: int = 0,
        min: int = 1,
        divisor: int = 1,
        remainder: int = 0,
        unique: bool = False,
        **kwargs: Any,
    ) -> None:
        for name, value in {"max": max, "min": min, "divisor": divisor, "remainder": remainder}.items():
            if not isinstance(cast(object, value), int):
                raise ApiTypeError("MSC0803", f"Symbol: {name} is {value!r}, not a whole number")
        if min < 1 or 0 < max < min or max < 0:
            raise ApiValueError("MSC0803", f"Symbol: min is {min} and max is {max}; a size is at least 1")
        self.least, self.most = min, max or None
        self.divisor, self.remainder, self.unique, self.given = divisor, remainder, unique, kwargs
