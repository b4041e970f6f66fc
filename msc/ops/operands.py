"""What functions do with their operands: numbers become tensors, element types are brought together."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeAlias, TypeGuard, TypeVar
from typing import cast as typed

import numpy as np

from msc.frontend import dtypes
from msc.frontend.dispatch import apply, scalar
from msc.frontend.dtypes import BOOLEAN, FLOAT, DType, of_python
from msc.frontend.errors import ApiTypeError
from msc.frontend.tensor import Number, Tensor
from msc.support.other_frameworks import advice_for

Operand: TypeAlias = Tensor | Number


def is_number(value: object) -> TypeGuard[Number]:
    """Whether a value is a Python or NumPy number."""
    return isinstance(value, bool | int | float | np.generic)


def is_data(value: object) -> bool:
    """Whether a value is a number, a list or an array, of which a tensor can be made."""
    return isinstance(value, bool | int | float | list | tuple | np.ndarray | np.generic)


def only_tensor(value: object, function: str, name: str = "input") -> Tensor:
    """The tensor, or one of a number, a list or an array. Raises MSC0811 for anything else."""
    if isinstance(value, Tensor):
        return value
    if is_data(value):
        return Tensor(value)
    raise ApiTypeError("MSC0811", f"{function}: {name} must be a Tensor, not {_kind(value)}", help=_advice(value))


def _kind(value: object) -> str:
    """The type of a value for people: with its module where it has the name of one of ours."""
    kind = type(value)
    name = kind.__name__ if kind.__name__ != "Tensor" else f"{kind.__module__.partition('.')[0]}.Tensor"
    return value.__name__ + ", a class" if isinstance(value, type) else f"a {name}"


def _advice(value: object) -> str | None:
    if isinstance(value, type):
        return f"make an object of it: {value.__name__}()"
    if hasattr(value, "construct"):
        return "call the cell with a tensor: its result is one"
    return advice_for(value)


def cast(x: Tensor, dtype: DType) -> Tensor:
    """The elements of x in another element type; x itself if it has that type."""
    return x if x.dtype is dtype else apply("cast", x, dtype=dtype)


def promoted(a: DType, b: DType) -> DType:
    """The element type that two tensors' elements become together: the higher category, and then the wider type."""
    if a is b:
        return a
    if a.category != b.category:
        return a if a.category > b.category else b
    if a.category == FLOAT:
        return dtypes.float32 if a.itemsize == b.itemsize else max(a, b, key=lambda d: d.itemsize)
    if a.is_signed == b.is_signed:
        return max(a, b, key=lambda d: d.itemsize)
    signed, unsigned = (a, b) if a.is_signed else (b, a)
    if unsigned.itemsize == 8:
        raise ApiTypeError(
            "MSC0812",
            f"no element type holds the numbers of both {a} and {b}",
            help="convert one of them with .astype()",
        )
    return signed if signed.itemsize > unsigned.itemsize else dtypes.by_name(f"int{16 * unsigned.itemsize}")


def with_number(dtype: DType, number: Number) -> DType:
    """The element type of a tensor with a Python number: the tensor's, unless the number is of a higher category."""
    other = of_python(np.asarray(number).item())
    return other if other.category > dtype.category else dtype


def pair(function: str, a: object, b: object) -> tuple[Tensor, Tensor]:
    """Both operands as tensors of one element type. Raises MSC0811, MSC0812."""
    if isinstance(a, Tensor):
        if isinstance(b, Tensor):
            if a.dtype is b.dtype:
                return a, b
            dtype = promoted(a.dtype, b.dtype)
            return cast(a, dtype), cast(b, dtype)
        if is_number(b):
            dtype = with_number(a.dtype, b)
            return cast(a, dtype), scalar(b, dtype.numpy)
        return pair(function, a, only_tensor(b, function, "other"))
    if isinstance(b, Tensor):
        if is_number(a):
            dtype = with_number(b.dtype, a)
            return scalar(a, dtype.numpy), cast(b, dtype)
        return pair(function, only_tensor(a, function), b)
    return pair(function, only_tensor(a, function), only_tensor(b, function, "other"))


def as_float(x: Tensor) -> Tensor:
    """X itself if its elements are floats, in Float32 otherwise."""
    return x if x.dtype.is_float else apply("cast", x, dtype=dtypes.float32)


def as_numbers(x: Tensor) -> Tensor:
    """X itself, booleans as Int64."""
    return x if x.dtype.category > BOOLEAN else apply("cast", x, dtype=dtypes.int64)


_SYNONYMS = (
    ("axis", "dim"),
    ("keepdims", "keep_dims", "keepdim"),
    ("input", "x", "input_x", "A", "tensor"),
    ("other", "y"),
    ("start_dim", "start_axis"),
)

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])


def flexible(function: FunctionT) -> FunctionT:
    """Let keyword arguments of a function also have the names that MindSpore's releases gave them in turn."""
    code = function.__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    other = {n: own for group in _SYNONYMS for own in group if own in names for n in group if n not in names}

    @wraps(function)
    def called(*args: Any, **keywords: Any) -> Any:
        if keywords:
            keywords = {other.get(name, name): value for name, value in keywords.items()}
        return function(*args, **keywords)

    return typed(FunctionT, called)
