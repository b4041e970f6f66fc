"""MindSpore's `_checkparam`: checks of arguments, which programs import though it is internal. Errors are MSC0897.

A check gives back the value that it was given. `Validator`, `ParamValidator` and `validator` of early releases are
this module.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from functools import partial
from inspect import Signature, isclass, signature
from typing import Any, TypeVar

from msc.frontend.dtypes import DType
from msc.frontend.errors import ApiTypeError, ApiValueError
from msc.frontend.tensor import Tensor
from msc.support.argument_values import described

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])

EQ, NE, LT, LE, GT, GE, INC_NEITHER, INC_LEFT, INC_RIGHT, INC_BOTH, IN, NOT_IN = range(1, 13)


class Rel(Enum):
    """How a value is to compare, as early releases say it."""

    EQ, NE, LT, LE, GT, GE, INC_NEITHER, INC_LEFT, INC_RIGHT, INC_BOTH, IN, NOT_IN = range(1, 13)


_HOLDS: Mapping[int, tuple[str, Callable[[Any, Any], bool]]] = {
    EQ: ("equal to {}", lambda a, b: a == b),
    NE: ("other than {}", lambda a, b: a != b),
    LT: ("less than {}", lambda a, b: a < b),
    LE: ("less than or equal to {}", lambda a, b: a <= b),
    GT: ("greater than {}", lambda a, b: a > b),
    GE: ("greater than or equal to {}", lambda a, b: a >= b),
    INC_NEITHER: ("in ({}, {})", lambda a, b: b[0] < a < b[1]),
    INC_LEFT: ("in [{}, {})", lambda a, b: b[0] <= a < b[1]),
    INC_RIGHT: ("in ({}, {}]", lambda a, b: b[0] < a <= b[1]),
    INC_BOTH: ("in [{}, {}]", lambda a, b: b[0] <= a <= b[1]),
    IN: ("one of {}", lambda a, b: a in b),
    NOT_IN: ("none of {}", lambda a, b: a not in b),
}


def _wrong(
    arg_name: str | None, prim_name: str | None, what: str, value: object, kind: type[Exception] = ValueError
) -> Exception:
    place = f"for '{prim_name}', " if prim_name else ""
    message = f"{place}'{arg_name or 'input'}' must be {what}, but it is {described(value)}"
    made = ApiTypeError if issubclass(kind, TypeError) else ApiValueError
    return made("MSC0897", message)


def _compared(value: Any, other: Any, rel: Any) -> str | None:
    """What a value is not, or None if it is."""
    words, holds = _HOLDS[rel.value if isinstance(rel, Rel) else rel]
    given = other if "{}, {}" in words else (other,)
    return None if holds(value, other) else words.format(*given)


def check(
    arg_name: str,
    arg_value: Any,
    value_name: str,
    value: Any,
    rel: Any = EQ,
    prim_name: str | None = None,
    excp_cls: type[Exception] = ValueError,
) -> Any:
    """A value that compares so with another one, which has a name, too."""
    if missed := _compared(arg_value, value, rel):
        raise _wrong(arg_name, prim_name, f"{missed} ({value_name})" if value_name else missed, arg_value, excp_cls)
    return arg_value


def check_number(arg_name: str, arg_value: Any, value: Any, rel: Any, prim_name: str | None = None) -> Any:
    """A number that compares so with another one."""
    if isinstance(arg_value, bool) or not isinstance(arg_value, int | float):
        raise _wrong(arg_name, prim_name, "a number", arg_value, TypeError)
    return check(arg_name, arg_value, "", value, rel, prim_name)


def _typed(kind: type, arg_value: Any, arg_name: str | None, prim_name: str | None) -> Any:
    if isinstance(arg_value, bool) != (kind is bool) or not isinstance(arg_value, kind):
        raise _wrong(arg_name, prim_name, f"a value of type {kind.__name__}", arg_value, TypeError)
    return arg_value


def check_is_number(arg_value: Any, arg_type: type, arg_name: str | None = None, prim_name: str | None = None) -> Any:
    """A finite number of a type."""
    _typed(arg_type, arg_value, arg_name, prim_name)
    if arg_value != arg_value or arg_value in (float("inf"), float("-inf")):
        raise _wrong(arg_name, prim_name, "a finite number", arg_value)
    return arg_value


def check_int(arg_value: Any, value: int, rel: Any, arg_name: str | None = None, prim_name: str | None = None) -> int:
    """An integer that compares so with another one."""
    check_is_number(arg_value, int, arg_name, prim_name)
    return check(arg_name or "input", arg_value, "", value, rel, prim_name)


def check_float(
    arg_value: Any, value: float, rel: Any, arg_name: str | None = None, prim_name: str | None = None
) -> float:
    """A float that compares so with another one."""
    check_is_number(arg_value, float, arg_name, prim_name)
    return check(arg_name or "input", arg_value, "", value, rel, prim_name)


def check_is_int(arg_value: Any, arg_name: str | None = None, prim_name: str | None = None) -> int:
    """An integer."""
    return check_is_number(arg_value, int, arg_name, prim_name)


def check_is_float(arg_value: Any, arg_name: str | None = None, prim_name: str | None = None) -> float:
    """A float."""
    return check_is_number(arg_value, float, arg_name, prim_name)


def check_equal_int(arg_value: Any, value: int, arg_name: str | None = None, prim_name: str | None = None) -> int:
    """An integer that is another one."""
    return check_int(arg_value, value, EQ, arg_name, prim_name)


def _with_sign(base: Callable[..., Any], rel: int, words: str) -> Callable[..., Any]:
    def checked(arg_value: Any, arg_name: str | None = None, prim_name: str | None = None) -> Any:
        return base(arg_value, 0, rel, arg_name, prim_name)

    checked.__doc__ = f"{words}."
    return checked


check_positive_int = _with_sign(check_int, GT, "A positive integer")
check_negative_int = _with_sign(check_int, LT, "A negative integer")
check_non_negative_int = _with_sign(check_int, GE, "An integer of 0 or more")
check_non_positive_int = _with_sign(check_int, LE, "An integer of 0 or less")
check_positive_float = _with_sign(check_float, GT, "A positive float")
check_negative_float = _with_sign(check_float, LT, "A negative float")
check_non_negative_float = _with_sign(check_float, GE, "A float of 0 or more")
check_non_positive_float = _with_sign(check_float, LE, "A float of 0 or less")


def _each(base: Callable[..., Any], words: str) -> Callable[..., Any]:
    def checked(sequence: Any, arg_name: str | None = None, prim_name: str | None = None) -> Any:
        if not isinstance(sequence, list | tuple):
            raise _wrong(arg_name, prim_name, "a list or a tuple", sequence, TypeError)
        for i, value in enumerate(sequence):  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
            base(value, f"{arg_name or 'input'}[{i}]", prim_name)
        return sequence  # pyright: ignore[reportUnknownVariableType]

    checked.__doc__ = f"{words}."
    return checked


check_positive_int_sequence = _each(check_positive_int, "Positive integers")
check_non_negative_int_sequence = _each(check_non_negative_int, "Integers of 0 or more")
check_positive_float_sequence = _each(check_positive_float, "Positive floats")


def check_bool(arg_value: Any, arg_name: str | None = None, prim_name: str | None = None) -> bool:
    """True or False."""
    return _typed(bool, arg_value, arg_name, prim_name)


def check_int_range(
    arg_value: Any, lower_limit: int, upper_limit: int, rel: Any, arg_name: str | None = None, prim_name: Any = None
) -> int:
    """An integer between two."""
    return check_int(arg_value, (lower_limit, upper_limit), rel, arg_name, prim_name)  # pyright: ignore


def check_float_range(
    arg_value: Any, lower_limit: float, upper_limit: float, rel: Any, arg_name: str | None = None, prim_name: Any = None
) -> float:
    """A float between two."""
    return check_float(arg_value, (lower_limit, upper_limit), rel, arg_name, prim_name)  # pyright: ignore


def check_number_range(
    arg_value: Any,
    lower_limit: float,
    upper_limit: float,
    rel: Any,
    value_type: type,
    arg_name: str | None = None,
    prim_name: str | None = None,
) -> Any:
    """A number of a type between two."""
    check_is_number(arg_value, value_type, arg_name, prim_name)
    return check(arg_name or "input", arg_value, "", (lower_limit, upper_limit), rel, prim_name)


def check_string(
    arg_value: Any, valid_values: Iterable[str], arg_name: str | None = None, prim_name: str | None = None
) -> str:
    """A text that is one of some. Early releases give the name of the argument first."""
    if isinstance(valid_values, str):
        arg_value, valid_values, arg_name = valid_values, arg_name or (), arg_value
    known = list(valid_values)
    if not isinstance(arg_value, str) or arg_value not in known:
        raise _wrong(arg_name, prim_name, f"one of {', '.join(map(repr, known))}", arg_value)
    return arg_value


def check_str_by_regular(
    target: str, reg: str | None = None, flag: Any = re.ASCII, prim_name: str | None = None
) -> str:
    """A text of letters, digits and `_-.:/`, or of a regular expression."""
    if re.match(reg or r"^[0-9a-zA-Z+\-_./:\\]*$", target, flag) is None:
        raise _wrong("text", prim_name, f"text as {reg or 'a name of letters, digits, + - _ . / :'}", target)
    return target


def _types(valid_types: Any) -> tuple[Any, ...]:
    return tuple(valid_types) if isinstance(valid_types, list | tuple | set) else (valid_types,)  # pyright: ignore


def check_value_type(arg_name: str, arg_value: Any, valid_types: Any, prim_name: str | None = None) -> Any:
    """A value of one of some types; a bool is no integer unless `bool` is among them."""
    known = tuple(each for each in _types(valid_types) if isclass(each))
    if not isinstance(arg_value, known) or (isinstance(arg_value, bool) and bool not in known and known != (object,)):
        names = " or ".join(each.__name__ for each in known)
        raise _wrong(arg_name, prim_name, f"a value of type {names}", arg_value, TypeError)
    return arg_value


def check_type(arg_name: str, arg_value: Any, valid_types: Any) -> Any:
    """As `check_value_type`, in early releases."""
    return check_value_type(arg_name, arg_value, valid_types)


def check_isinstance(arg_name: str, arg_value: Any, classes: Any) -> Any:
    """An object of some classes."""
    if not isinstance(arg_value, classes):
        raise _wrong(arg_name, None, f"an object of {classes}", arg_value, ValueError)
    return arg_value


def _names(kinds: Iterable[Any]) -> str:
    return ", ".join(sorted(map(str, kinds)))


def check_type_name(arg_name: str, arg_type: Any, valid_types: Any, prim_name: str | None = None) -> Any:
    """An element type, or a type, that is one of some."""
    if arg_type not in _types(valid_types):
        raise _wrong(arg_name, prim_name, f"one of {_names(_types(valid_types))}", arg_type, TypeError)
    return arg_type


def check_subclass(
    arg_name: str,
    type_: Any,
    template_types: Any,
    prim_name: str | None = None,
    addition_error_info: str | None = None,
) -> Any:
    """A type that is one of some, or a subclass of one; an element type stands for tensors of it."""
    known = _types(template_types)
    is_one = any(type_ is each or (isclass(type_) and isclass(each) and issubclass(type_, each)) for each in known)
    if not is_one and not (isinstance(type_, DType) and Tensor in known):
        raise _wrong(
            arg_name, prim_name, f"one of {_names(known)} {addition_error_info or ''}".strip(), type_, TypeError
        )
    return type_


def check_tensor_dtype_valid(arg_name: str, arg_type: Any, valid_dtypes: Any, prim_name: str | None = None) -> Any:
    """The element type of a tensor, which is one of some."""
    return check_type_name(arg_name, getattr(arg_type, "dtype", arg_type), valid_dtypes, prim_name)


def check_tensors_dtypes_same_and_valid(
    args: Mapping[str, Any], valid_dtypes: Any, prim_name: str | None = None
) -> None:
    """Element types by name, which are all the same and one of some."""
    kinds = {name: getattr(kind, "dtype", kind) for name, kind in args.items()}
    for name, kind in kinds.items():
        check_type_name(name, kind, valid_dtypes, prim_name)
    if len(set(kinds.values())) > 1:
        raise _wrong(" and ".join(kinds), prim_name, "of one element type", _names(kinds.values()), TypeError)


check_tensor_type_same = check_types_same_and_valid = check_tensors_dtypes_same_and_valid


def check_scalar_or_tensor_types_same(
    args: Mapping[str, Any], valid_values: Any, prim_name: str | None = None, allow_mix: bool = False
) -> None:
    """Types of numbers or tensors by name: the same, unless they may be mixed, and one of some."""
    for name, kind in args.items() if allow_mix else ():
        check_type_name(name, getattr(kind, "dtype", kind), valid_values, prim_name)
    if not allow_mix:
        check_tensors_dtypes_same_and_valid(args, valid_values, prim_name)


def args_type_check(*type_args: Any, **type_kwargs: Any) -> Callable[[FunctionT], FunctionT]:
    """Decorate a function whose arguments are of such types; None stands for any value."""

    def decorated(function: FunctionT) -> FunctionT:
        formal: Signature = signature(function)
        wanted = formal.bind_partial(*type_args, **type_kwargs).arguments

        def called(*args: Any, **keywords: Any) -> Any:
            for name, value in formal.bind(*args, **keywords).arguments.items():
                if value is not None and wanted.get(name) is not None:
                    check_value_type(name, value, [*_types(wanted[name]), bool], function.__name__)
            return function(*args, **keywords)

        called.__name__, called.__doc__ = function.__name__, function.__doc__
        return called  # pyright: ignore[reportReturnType]

    return decorated


def _tuple_of(count: int, value: Any) -> Any:
    """A value so many times; a sequence of so many as it is."""
    if isinstance(value, list | tuple):
        given: tuple[Any, ...] = tuple(value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
        if len(given) != count:
            raise _wrong(None, None, f"a number or {count} of them", given)
        return given
    return (value,) * count


once, twice, triple = (partial(_tuple_of, count) for count in (1, 2, 3))


def check_axis_in_range(axis: int, ndim: int) -> int:
    """The number of an axis, from the front. Raises MSC0897 if there is none."""
    check_int_range(axis, -ndim, ndim, INC_LEFT, "axis")
    return axis % ndim


def infer_out_shape(*shapes: Sequence[int]) -> tuple[int, ...]:
    """The shape to which shapes broadcast. Raises MSC0897."""
    width = max(map(len, shapes), default=0)
    columns = zip(*((1,) * (width - len(shape)) + tuple(shape) for shape in shapes), strict=True)
    made = tuple(max(column) if 0 not in column else 0 for column in columns)
    for shape in shapes:
        if any(n not in (1, m) for n, m in zip(reversed(shape), reversed(made), strict=False)):
            raise _wrong("shapes", None, "shapes that broadcast", shapes)
    return made


Validator = ParamValidator = validator = sys.modules[__name__]
