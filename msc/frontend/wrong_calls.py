"""What is wrong with a call: too many arguments, an unknown name, a value that is not what its annotation says."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import PurePath
from types import NoneType, UnionType
from typing import Any, Literal, Union, cast, get_args, get_origin

import numpy as np

from msc.frontend.dtypes import DType
from msc.frontend.errors import ApiTypeError
from msc.frontend.tensor import Tensor
from msc.support.torch_names import argument_hint
from msc.support.wording import a

_LONG = 60


@dataclass(frozen=True)
class WrongCall:
    """The message and the advice; `is_type` says that an argument is of another kind than what is taken."""

    message: str
    help: str | None
    is_type: bool


def explained(
    name: str,
    function: Callable[..., Any],
    described: Callable[..., Any] | None,
    args: tuple[Any, ...],
    keywords: Mapping[str, Any],
) -> WrongCall:
    """What to say of a call that could not be computed; `described` as `boundary.public` takes it."""
    subject: Any = function if described is None else inspect.unwrap(described(*args))
    target: Callable[..., Any] = getattr(subject, "construct", subject)
    signature, given = _signature(target), args
    has_self = next(iter(signature.parameters), "") in ("self", "cls")
    if described is not None or has_self:
        given = args[1:]
        if has_self:
            signature = signature.replace(parameters=list(signature.parameters.values())[1:])
    if described is not None:
        name = getattr(subject, "__name__", type(subject).__name__)
    elif args and function.__name__ == "__init__":
        name = type(args[0]).__name__
    elif args and function.__name__ == "__new__":
        name = args[0].__name__
    usage = f"it is called as {name.rpartition('.')[2]}{_plain(signature)}"
    if getattr(target, "__name__", "") == "construct":
        usage += ", as its construct says"
    arity = _arity(signature, given, keywords)
    if arity is not None:
        return WrongCall(f"{name} {arity[0]}", arity[1] or usage, is_type=True)
    bound = signature.bind(*given, **keywords)
    hints = _hints(target)
    for fits in (_is_near, _is_exact):
        if misfit := _misfit(bound, hints, fits):
            return WrongCall(f"{name}: {misfit}", usage, is_type=True)
    said = ", ".join(f"{parameter} is {shown(value)}" for parameter, value in bound.arguments.items())
    return WrongCall(f"{name} cannot be computed: {said or 'it has no arguments'}", usage, is_type=False)


def check_arguments(owner: str, function: Callable[..., Any], args: Sequence[Any], keywords: Mapping[str, Any]) -> None:
    """Raise MSC0824 for an argument that is not what its annotation says."""
    signature = _signature(function)
    if misfit := _misfit(signature.bind(*args, **keywords), _hints(function), _is_exact):
        order = ", ".join(list(signature.parameters)[1:])
        raise ApiTypeError("MSC0824", f"{owner}: {misfit}", help=f"the order is {owner}({order})")


def _misfit(bound: inspect.BoundArguments, hints: Mapping[str, Any], fits: Callable[[Any, Any], bool]) -> str:
    """What to say of the first argument that does not fit its annotation; nothing if all fit."""
    for parameter, value in bound.arguments.items():
        kind = bound.signature.parameters[parameter].kind
        several = kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        hint = hints.get(parameter, Any)
        for one in _items(value) if several else [value]:
            if not fits(one, hint):
                return f"{parameter} is {shown(one)}; it takes {words(hint)}"
    return ""


def _items(value: Any) -> Iterable[Any]:
    return cast("Mapping[str, Any]", value).values() if isinstance(value, Mapping) else value


def _signature(function: Callable[..., Any]) -> inspect.Signature:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return inspect.Signature()


def _plain(signature: inspect.Signature) -> str:
    """The parameters with their defaults, without annotations."""
    empty = inspect.Parameter.empty
    parameters = [p.replace(annotation=empty) for p in signature.parameters.values()]
    return str(signature.replace(parameters=parameters, return_annotation=inspect.Signature.empty))


def _arity(
    signature: inspect.Signature, args: Sequence[Any], keywords: Mapping[str, Any]
) -> tuple[str, str | None] | None:
    """What is wrong with the number and the names of the arguments, and advice."""
    parameters = signature.parameters.values()
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    if not any(p.kind is p.VAR_KEYWORD for p in parameters):
        unknown = [name for name in keywords if name not in names]
        if unknown:
            return f"has no argument '{unknown[0]}'", argument_hint(unknown[0], names)
    positional = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if len(args) > len(positional) and not any(p.kind is p.VAR_POSITIONAL for p in parameters):
        count = len(positional)
        return f"takes {count} argument{'' if count == 1 else 's'} without a name, not {len(args)}", None
    twice = [name for name in positional[: len(args)] if name in keywords]
    if twice:
        return f"is given '{twice[0]}' twice", None
    missing = [
        p.name
        for p in parameters
        if p.default is p.empty
        and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
        and p.name not in (*positional[: len(args)], *keywords)
    ]
    return (f"needs '{missing[0]}'", None) if missing else None


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    """What the annotations say; nothing of names that only type checkers know."""
    inner = inspect.unwrap(function.func if isinstance(function, partial) else function)
    inner = getattr(inner, "__init__", inner) if isinstance(inner, type) else inner
    try:
        return typing.get_type_hints(inner)
    except (NameError, TypeError, AttributeError):
        return {}


def _is_near(value: Any, hint: Any) -> bool:
    """Whether a value may count as what is asked for: numbers, lists and arrays as tensors, NumPy's numbers as ints."""
    if hint is Tensor and not isinstance(value, bool | int | float | list | tuple | np.ndarray | np.generic):
        return isinstance(value, Tensor)
    return hint is Tensor or _is_exact(value, hint)


def _is_exact(value: Any, hint: Any) -> bool:
    """Whether a value is what an annotation says; of annotations that are not known, it is."""
    origin = get_origin(hint)
    if hint is Any or isinstance(hint, typing.TypeVar | str):
        return True
    if hint in (None, NoneType):
        return value is None
    if origin in (Union, UnionType):
        return any(_is_exact(value, one) for one in get_args(hint))
    if origin is Literal:
        return value in get_args(hint)
    if hint in (int, float):
        return isinstance(value, int | np.integer | (float | np.floating if hint is float else int))
    if isinstance(origin, type):
        if not isinstance(value, origin) or (issubclass(origin, Sequence) and isinstance(value, str | bytes)):
            return False
        inner = [one for one in get_args(hint) if one is not ...]
        items: Any = value
        return not (issubclass(origin, Sequence) and len(inner) == 1) or all(_is_exact(v, inner[0]) for v in items)
    return isinstance(value, hint) if isinstance(hint, type) else True


def words(hint: Any) -> str:
    """What an annotation asks for, in plain words."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        kinds = list(dict.fromkeys(words(one) for one in sorted(inner, key=lambda one: one is NoneType)))
        return " or ".join([", ".join(kinds[:-1]), kinds[-1]]) if len(kinds) > 1 else kinds[0]
    if origin is Literal:
        return " or ".join(map(repr, inner))
    if isinstance(origin, type):
        several = _PLURALS.get(inner[0], "") if issubclass(origin, Sequence) else ""
        return f"a sequence of {several}" if several else _article(origin.__name__)
    return _WORDS.get(hint) or _article(getattr(hint, "__name__", str(hint)))


_WORDS: Mapping[Any, str] = {
    int: "an integer",
    float: "a number",
    bool: "True or False",
    str: "a string",
    NoneType: "None",
    None: "None",
    Tensor: "a Tensor",
    DType: "an element type",
    np.ndarray: "a NumPy array",
}
_PLURALS: Mapping[Any, str] = {int: "integers", float: "numbers", bool: "booleans", str: "strings", Tensor: "Tensors"}


def _article(name: str) -> str:
    return "a function" if name == "Callable" else a(name)


def shown(value: Any) -> str:
    """A value in a message: what is short as it is written, tensors and arrays by shape and element type."""
    if isinstance(value, Tensor):
        return f"a Tensor of shape {value.shape} and {value.dtype}"
    if isinstance(value, np.ndarray):
        array = cast("np.ndarray[Any, np.dtype[Any]]", value)
        return f"an array of shape {array.shape} and {array.dtype}"
    items: list[Any] = list(cast("list[Any]", value)) if isinstance(value, list | tuple) else []
    if any(isinstance(item, Tensor | np.ndarray) for item in items):
        return f"a {'list' if isinstance(value, list) else 'tuple'} of {', '.join(map(shown, items))}"
    if isinstance(value, DType):
        return str(value)
    if value is None or isinstance(value, bool | int | float | str | bytes | list | tuple):
        text = repr(cast(object, value))
        return text if len(text) <= _LONG else f"{text[: _LONG - 4]}..."
    if isinstance(value, PurePath):
        return f"the path '{value}'"
    if isinstance(value, type):
        return f"the class {value.__name__}"
    return _article(type(value).__name__)
