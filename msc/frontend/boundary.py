"""The edge of the Python library: what a wrong call raises deep inside becomes an error in the words of the API.

A right call is not looked at. Where one raises an exception that is none of ours, the arguments are compared with what
the function's signature says that it takes, and the message names the one that does not fit. Where all of them do, it
tells whose mistake it is by where the exception was raised (`_is_ours`): a function that computes with what the user
wrote refuses it in the words of Python; what fails further inside is a bug in msc, MSC0900.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import wraps
from importlib import import_module
from importlib.util import find_spec
from types import FrameType, FunctionType, ModuleType, TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

from msc.frontend.errors import (
    ApiError,
    ApiIndexError,
    ApiMemoryError,
    ApiTypeError,
    ApiValueError,
    is_msc,
    is_user_code,
    missing_name,
)
from msc.support.diagnostics import MscError
from msc.support.failures import diagnosed

if TYPE_CHECKING:
    from msc.frontend.wrong_calls import WrongCall

F = TypeVar("F", bound=Callable[..., Any])

_OF_PYTHON: tuple[type[Exception], ...] = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    BufferError,
    LookupError,
    RuntimeError,
    TypeError,
    ValueError,
)

_PACKAGE = "msc."
_VALUES = (
    "ops nn numpy amp common model_zoo dialects.ms dataset.transforms dataset.vision dataset.text dataset.audio "
    "frontend.arrays frontend.dispatch frontend.dtypes frontend.initializers frontend.parameter frontend.tensor"
)
_SURFACE = tuple(f"msc.{name}." for name in _VALUES.split())
"""Modules whose functions compute with the very values that users wrote. All others get what these have checked."""
_NEVER_OF_VALUES = (AssertionError, NameError, KeyError, RecursionError)
_PROTOCOL = re.compile(r"'?__\w+__\b|iter\(\) returned non-iterator")
"""How Python begins what it says of an object whose special methods do not keep to their rules."""
_CALL = re.compile(r"([\w.<>]+)\(\) (?:takes|missing|got an unexpected|got multiple|got some)")
"""What Python says of a function that is called with other arguments than it has."""
_ASKED_BY_PYTHON = frozenset(
    "__init__ __new__ __getitem__ __setitem__ __len__ __iter__ __contains__ __bool__ __int__ __float__ __index__ "
    "__call__ __abs__ __neg__ __pos__ __invert__ __array__ __round__".split()
)
_OPERATORS = "add sub mul matmul truediv floordiv mod pow and or xor lshift rshift eq ne lt le gt ge".split()
_FOR_MSC = ("of", "run_construct")
"""Methods that msc itself calls, though their names have no underscore."""
METHODS = _ASKED_BY_PYTHON | {f"__{prefix}{name}__" for name in _OPERATORS for prefix in ("", "r", "i")}
"""The methods with a meaning of their own that a class of the library lets users reach."""


def bare_errors() -> tuple[type[Exception], ...]:
    """What Python and NumPy raise of wrong values; MSC's own errors are some of these as well.

    Importing msc does not import NumPy: only a module that is loaded can have raised an error of its own.
    """
    masked_arrays = sys.modules.get("numpy.ma")
    return _OF_PYTHON if masked_arrays is None else (*_OF_PYTHON, masked_arrays.MAError)


def public(function: F, name: str, described: Callable[..., Any] | None = None) -> F:
    """The function with the boundary around it; it is called `name` in messages.

    `described` gives, from the arguments of a call, the function or Cell whose signature says what users pass after
    the first argument.
    """

    @wraps(function)
    def called(*args: Any, **keywords: Any) -> Any:
        try:
            return function(*args, **keywords)
        except MscError as error:
            if error.__traceback__ is not None and error.__traceback__.tb_next is None:
                error.__traceback__ = None  # `Door` took the frames of the inside away; this one is of the inside, too
            raise
        except bare_errors() as error:
            caller = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
            if _is_inside(caller) or _is_users(error.__traceback__):
                raise
            raised = _error(name, function, described, args, keywords, error)
            if not isinstance(raised, ApiError):
                raise raised from error
            raise raised from (error if os.environ.get("MSC_TRACEBACK") else None)
        except MemoryError:
            raise ApiMemoryError("MSC0020", f"{name}: there is not enough memory for the result") from None

    _CODES.add(cast(FunctionType, called).__code__)
    return cast(F, called)


_CODES: set[object] = set()
"""The code of all boundaries: one object, as they are made in one place."""


def published(value: Any, name: str) -> Any:
    """A function of msc with the boundary around it, which is `name` to users; anything else as it is."""
    if isinstance(value, FunctionType) and value.__module__.startswith(_PACKAGE) and value.__code__ not in _CODES:
        return public(value, name)
    return value


def publish(names: dict[str, Any], exported: Iterable[str], module: str) -> None:
    """Put the boundary around every function that a module of the API exports, under each of its names.

    And around the methods of its classes that are made in none of the ways that see to it themselves.
    """
    for name in exported:
        value = names[name] = published(names[name], f"{module}.{name}")
        if isinstance(value, type) and value.__module__.startswith(_PACKAGE):
            publish_methods(value, value.__name__, without=(*_FOR_MSC, *getattr(value, "FOR_MSC", ())))


def surface(names: dict[str, Any], module: str) -> None:
    """Make what a module of the API has imported its surface: `__all__`, boundaries, and words for other names.

    What has no leading underscore and is no module belongs to it. Submodules are imported when they are named.
    """
    package = f"{_PACKAGE}{module}"
    exported = names["__all__"] = sorted(
        name for name, value in names.items() if not name.startswith("_") and not isinstance(value, ModuleType)
    )
    publish(names, exported, module)

    def missing(name: str) -> object:
        if not name.startswith("_") and find_spec(f"{package}.{name}"):
            return import_module(f"{package}.{name}")
        return elsewhere(package, name, exported)

    names["__getattr__"] = missing


def elsewhere(module: str, name: str, names: Iterable[str]) -> Any:
    """A name of MindSpore's that a module of the API does not have: an internal one, or one that is refused in use.

    Raises MSC0832 for a name that MindSpore has none of.
    """
    found = None if name.startswith("__") else import_module("msc.mindspore.names").find(name)
    if found is None:
        raise missing_name(module, name, names)
    return found


def publish_methods(class_: type[Any], name: str, without: tuple[str, ...] = ()) -> None:
    """Put the boundary around the methods that a class itself defines, but for those with a leading underscore."""
    for key, value in list(vars(class_).items()):
        wanted = key in METHODS if key.startswith("_") else key not in without
        called = name if key in ("__init__", "__new__") else f"{name}.{key}"
        if wanted and isinstance(value, staticmethod | classmethod):
            bound = cast("staticmethod[..., Any] | classmethod[Any, ..., Any]", value)
            setattr(class_, key, type(bound)(public(bound.__func__, called)))
        elif wanted and isinstance(value, FunctionType) and value.__code__ not in _CODES:
            setattr(class_, key, public(value, called))


class Published:
    """Base of classes whose subclasses in the library tell of wrong arguments in the words of the API."""

    FOR_MSC: ClassVar[tuple[str, ...]] = ()
    """The methods that msc itself calls."""

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if cls.__module__.startswith(_PACKAGE) and Published not in cls.__bases__:
            publish_methods(cls, cls.__name__, without=cls.FOR_MSC)


def _is_inside(frame: FrameType | None) -> bool:
    """Whether a call comes from msc itself below another boundary, which knows what the user wrote."""
    while frame is not None and is_msc(frame):
        if frame.f_code in _CODES:
            return True
        frame = frame.f_back
    return False


def _is_users(traceback: TracebackType | None) -> bool:
    """Whether an exception comes out of a user's own function, which the library called or reads."""
    while traceback is not None:
        if is_user_code(traceback.tb_frame):
            return True
        traceback = traceback.tb_next
    return False


def _is_ours(error: BaseException) -> bool:
    """Whether an exception means a bug in msc, though no argument is of a wrong kind."""
    frames = [frame for frame, _ in _frames(error) if is_msc(frame)]
    module = f"{frames[-1].f_globals.get('__name__', '')}." if frames else ""
    if isinstance(error, AttributeError) and isinstance(error.obj, ModuleType):
        return True
    if isinstance(error, _NEVER_OF_VALUES):
        return True
    return not module.startswith(_SURFACE) and not _is_of_a_users_object(error)


def _is_of_a_users_object(error: BaseException) -> bool:
    """Whether Python refuses what a user's object does: how it is called, and what its special methods give."""
    text = str(error)
    if called := _CALL.match(text):
        first = called[1].partition(".")[0]
        return not any(_is_defined_in(name, first) for name in list(sys.modules) if name.startswith(_PACKAGE))
    return bool(_PROTOCOL.match(text))


def _is_defined_in(module: str, name: str) -> bool:
    return getattr(vars(sys.modules[module]).get(name), "__module__", None) == module


def _frames(error: BaseException) -> Iterator[tuple[FrameType, int]]:
    """The frames that an exception came through, with lines, from the outermost on."""
    traceback = error.__traceback__
    while traceback is not None:
        yield traceback.tb_frame, traceback.tb_lineno
        traceback = traceback.tb_next


def _of_inner_call(error: BaseException) -> WrongCall | None:
    """What is wrong with a call of a user's function or Cell that msc made below, as `Model.train` calls a network."""
    from msc.frontend.wrong_calls import explained

    inner = [frame.f_locals for frame, _ in _frames(error) if frame.f_code in _CODES][1:]
    for call in reversed(inner):
        described = call.get("described")
        if described is not None and not type(described(*call["args"])).__module__.startswith(_PACKAGE):
            wrong = explained(call["name"], call["function"], described, call["args"], call["keywords"])
            if wrong.is_type:
                return wrong
    return None


def _error(
    name: str,
    function: Callable[..., Any],
    described: Callable[..., Any] | None,
    args: tuple[Any, ...],
    keywords: dict[str, Any],
    error: BaseException,
) -> MscError:
    from msc.frontend.wrong_calls import explained

    wrong = explained(name, function, described, args, keywords)
    if not wrong.is_type and (inner := _of_inner_call(error)):
        return ApiTypeError("MSC0833", inner.message, help=inner.help, notes=(f"{name} called it",))
    if not wrong.is_type and _is_ours(error):
        *_, (frame, line) = (place for place in _frames(error) if is_msc(place[0]))
        where = f"it was raised in {frame.f_globals.get('__name__')}, line {line}"
        return MscError(replace(diagnosed(error), notes=(f"the call: {wrong.message}", where)))
    kind = ApiTypeError if wrong.is_type or isinstance(error, TypeError) else ApiValueError
    if isinstance(error, IndexError) and not wrong.is_type:
        kind = ApiIndexError
    if wrong.is_type:
        return kind("MSC0833", wrong.message, help=wrong.help)
    raised = f"{type(error).__name__}: {str(error).partition(chr(10))[0][:200]}"
    advice = f"{wrong.help}; if these arguments are right, this is a bug in msc, and MSC_TRACEBACK=1 shows its place"
    return kind("MSC0833", wrong.message, help=advice, notes=(f"it ended with {raised}",))
