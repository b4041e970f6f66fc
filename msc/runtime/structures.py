"""How results are nested: tuples, lists, dicts and named tuples around arrays, as a text that artifacts carry.

The text is JSON. A number is a result by its position; all else is an object of one key that says what it is:
`{"tuple": [0, {"dict": {"loss": 1}}]}` is `(first, {"loss": second})`. `constant` is a value that is the same in every
call, `scalar` a result that is given as a Python number.
"""

from __future__ import annotations

import collections
import json
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeAlias, cast

from msc.support.wording import a

Structure: TypeAlias = Any
"""A structure as JSON has it: an int, or a dict of one key."""

Restore: TypeAlias = Callable[[Sequence[Any]], Any]
"""From the results in their order to the nested value."""


def flatten(value: object, is_leaf: Callable[[object], bool]) -> tuple[list[Any], Structure]:
    """The leaves of a nested value from left to right, and its structure.

    What is neither a leaf nor a container is a constant, which must be a value that JSON has. Raises TypeError for any
    other.
    """
    leaves: list[Any] = []
    return leaves, _structure(value, is_leaf, leaves)


def _structure(value: object, is_leaf: Callable[[object], bool], leaves: list[Any]) -> Structure:
    def inner(item: object) -> Structure:
        return _structure(item, is_leaf, leaves)

    if is_leaf(value):
        leaves.append(value)
        return len(leaves) - 1
    match value:
        case tuple():
            items = [inner(item) for item in cast(tuple[object, ...], value)]
            fields = _fields_of(cast(object, value))
            return (
                {"tuple": items}
                if fields is None
                else {"namedtuple": [_class_name(cast(object, value)), fields, items]}
            )
        case list():
            return {"list": [inner(item) for item in cast(list[object], value)]}
        case dict():
            pairs = cast(dict[object, object], value)
            if all(isinstance(key, str) for key in pairs):
                return {"dict": {str(key): inner(item) for key, item in pairs.items()}}
            return {"pairs": [[_constant(key), inner(item)] for key, item in pairs.items()]}
        case _:
            return {"constant": _constant(value)}


def _class_name(value: object) -> str:
    return type(value).__name__


def _fields_of(value: object) -> list[str] | None:
    """The names of a named tuple's items; None for a plain tuple."""
    fields: object = getattr(value, "_fields", None)
    return [str(name) for name in cast(tuple[object, ...], fields)] if isinstance(fields, tuple) else None


def _constant(value: object) -> object:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"{a(type(value).__name__)} cannot be part of what a compiled function gives")


def structure_text(structure: Structure) -> str:
    """The text of a structure, one line."""
    return json.dumps(structure, separators=(",", ":"))


@lru_cache(maxsize=256)
def restorer(text: str) -> Restore:
    """What makes the nested value of the results. Raises ValueError for what is not the text of a structure."""
    try:
        return _restorer(json.loads(text))
    except (KeyError, TypeError, IndexError, AttributeError) as error:
        raise ValueError(f"not a structure of results: {error}") from error


def _restorer(structure: Structure) -> Restore:
    if isinstance(structure, int):
        return lambda results: results[structure]
    ((kind, given),) = cast(Mapping[str, Any], structure).items()
    match kind:
        case "tuple":
            items = tuple(map(_restorer, given))
            return lambda results: tuple(item(results) for item in items)
        case "list":
            items = tuple(map(_restorer, given))
            return lambda results: [item(results) for item in items]
        case "dict":
            named = {str(key): _restorer(item) for key, item in given.items()}
            return lambda results: {key: item(results) for key, item in named.items()}
        case "pairs":
            pairs = [(key, _restorer(item)) for key, item in given]
            return lambda results: {key: item(results) for key, item in pairs}
        case "namedtuple":
            name, fields, inner = given
            made, items = _named_tuple(name, tuple(fields)), tuple(map(_restorer, inner))
            return lambda results: made(*(item(results) for item in items))
        case "scalar":
            return lambda results: results[given].item()
        case "constant":
            return lambda _: given
        case _:
            raise KeyError(kind)


@lru_cache(maxsize=256)
def _named_tuple(name: str, fields: tuple[str, ...]) -> Callable[..., Any]:
    return cast(Any, collections).namedtuple(name, fields)
