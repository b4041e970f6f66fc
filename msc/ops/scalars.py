"""Functions of Python's numbers and of structures, by MindSpore's names."""

# Values of user programs and lambdas of operators are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownLambdaType=false, reportUnnecessaryComparison=false, reportUnnecessaryIsInstance=false

from __future__ import annotations

import math
import operator as python
from collections.abc import Callable
from typing import Any

from msc.frontend.dtypes import as_dtype
from msc.frontend.tensor import Tensor
from msc.ops import (
    methods,
)
from msc.ops.operands import cast

__all__ = [
    "add_flags",
    "array_to_scalar",
    "deepcopy",
    "make_tuple",
    "mixed_precision_cast",
    "scalar_add",
    "scalar_cast",
    "scalar_div",
    "scalar_eq",
    "scalar_floordiv",
    "scalar_ge",
    "scalar_gt",
    "scalar_le",
    "scalar_log",
    "scalar_lt",
    "scalar_max",
    "scalar_min",
    "scalar_mod",
    "scalar_mul",
    "scalar_ne",
    "scalar_pow",
    "scalar_sub",
    "scalar_to_array",
    "scalar_uadd",
    "scalar_usub",
    "tuple_getitem",
    "typeof",
]


def _of_numbers(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of Python's numbers."""

    def one(x: Any) -> Any:
        return function(x)

    def two(x: Any, y: Any) -> Any:
        return function(x, y)

    made = one if name in ("log", "uadd", "usub") else two
    made.__name__ = made.__qualname__ = f"scalar_{name}"
    made.__doc__ = f"Python's {name} of numbers."
    return made


scalar_add, scalar_sub = _of_numbers("add", python.add), _of_numbers("sub", python.sub)


scalar_mul, scalar_div = _of_numbers("mul", python.mul), _of_numbers("div", python.truediv)


scalar_floordiv, scalar_mod = _of_numbers("floordiv", python.floordiv), _of_numbers("mod", python.mod)


scalar_pow, scalar_log = _of_numbers("pow", python.pow), _of_numbers("log", math.log)


scalar_eq, scalar_ne = _of_numbers("eq", python.eq), _of_numbers("ne", python.ne)


scalar_lt, scalar_le = _of_numbers("lt", python.lt), _of_numbers("le", python.le)


scalar_gt, scalar_ge = _of_numbers("gt", python.gt), _of_numbers("ge", python.ge)


scalar_uadd, scalar_usub = _of_numbers("uadd", python.pos), _of_numbers("usub", python.neg)


scalar_max, scalar_min = _of_numbers("max", max), _of_numbers("min", min)


def scalar_cast(input_x: Any, input_y: Any) -> Any:
    """A number in the Python type of an element type."""
    dtype = as_dtype(input_y)
    return float(input_x) if dtype.is_float else int(input_x) if dtype.is_integer else bool(input_x)


def scalar_to_array(input_x: Any) -> Tensor:
    """A number as a tensor of rank 0."""
    return Tensor(input_x)


def array_to_scalar(x: Tensor) -> Any:
    """The only element as a Python number."""
    return x.item()


def make_tuple(*values: Any) -> tuple[Any, ...]:
    """The values as a tuple."""
    return values


def tuple_getitem(values: Any, index: int) -> Any:
    """The value at a place of a tuple."""
    return values[index]


def typeof(x: Any) -> Any:
    """The element type of a tensor, the Python type of anything else."""
    return x.dtype if isinstance(x, Tensor) else type(x)


def add_flags(fn: Any = None, **flags: Any) -> Any:
    """A function itself, or the decorator that leaves it as it is: graphs depend on the code of a function alone."""
    del flags

    def same(function: Any) -> Any:
        return function

    return same if fn is None else fn


def mixed_precision_cast(dst_type: Any, value: Any) -> Any:
    """The float tensors of a structure in another float type."""
    if isinstance(value, tuple | list):
        return type(value)(mixed_precision_cast(dst_type, v) for v in value)
    return cast(value, as_dtype(dst_type)) if isinstance(value, Tensor) and value.dtype.is_float else value


def deepcopy(input_x: Tensor) -> Tensor:
    """A tensor of the same elements."""
    return methods.copied(input_x)
