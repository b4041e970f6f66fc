"""What layers check of their arguments, and the hints for arguments in the order of MindSpore's early releases."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from msc.frontend.errors import ApiTypeError, ApiValueError
from msc.frontend.wrong_calls import check_arguments, shown

F = TypeVar("F", bound=Callable[..., None])


def checked(init: F, layer: str) -> F:
    """An `__init__` that raises MSC0824 for an argument that is not what its annotation says."""

    @wraps(init)
    def made(self: object, *args: Any, **keywords: Any) -> None:
        check_arguments(layer, init, (self, *args), keywords)
        init(self, *args, **keywords)

    return cast(F, made)


def positive(layer: str, **sizes: object) -> None:
    """Raise MSC0824 unless every size is an integer of 1 or more."""
    for name, value in sizes.items():
        if isinstance(value, bool) or not isinstance(value, int):
            raise ApiTypeError("MSC0824", f"{layer}: {name} is {value!r}; it must be an integer")
        if value < 1:
            raise ApiValueError("MSC0824", f"{layer}: {name} is {value}; it must be 1 or more")


def boolean(layer: str, name: str, value: object, order: str) -> None:
    """Raise MSC0824, with the order of the arguments, unless a value is True or False."""
    if not isinstance(value, bool):
        raise ApiTypeError(
            "MSC0824", f"{layer}: {name} is {value!r}, not a boolean", help=f"the order is {layer}({order})"
        )


def word(layer: str, name: str, value: object, words: tuple[str, ...], order: str) -> str:
    """The word in lower case. Raises MSC0824, with the order of the arguments, unless it is one of `words`."""
    if not isinstance(value, str) or value.lower() not in words:
        kinds = ", ".join(map(repr, words))
        raise ApiValueError(
            "MSC0824", f"{layer}: {name} is {shown(value)}, not one of {kinds}", help=f"the order is {layer}({order})"
        )
    return value.lower()


def groups(layer: str, group: int, in_channels: int, out_channels: int) -> None:
    """Raise MSC0824 unless the groups divide both numbers of channels."""
    positive(layer, group=group, in_channels=in_channels, out_channels=out_channels)
    if in_channels % group or out_channels % group:
        raise ApiValueError(
            "MSC0824", f"{layer}: {group} groups do not divide {in_channels} inputs and {out_channels} outputs"
        )
