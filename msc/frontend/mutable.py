"""`mutable`: numbers that a compiled function takes at run time, not as constants."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

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
