"""Element-wise functions, windows and types, with NumPy's arguments."""

# Values of user programs and lambdas of operators are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownLambdaType=false, reportUnnecessaryComparison=false, reportUnnecessaryIsInstance=false

from __future__ import annotations

from typing import Any

import numpy as np

from msc import ops
from msc.frontend import dtypes
from msc.frontend.dtypes import DType, as_dtype
from msc.frontend.tensor import Tensor, concrete
from msc.numpy.creation import Data, asarray
from msc.numpy.outside import by_numpy, typed
from msc.ops.operands import as_float, cast, promoted

__all__ = [
    "array_equiv",
    "array_str",
    "asfarray",
    "bartlett",
    "bitwise_not",
    "blackman",
    "copysign",
    "fabs",
    "float_power",
    "gcd",
    "geomspace",
    "hamming",
    "hanning",
    "invert",
    "isneginf",
    "isposinf",
    "isscalar",
    "lcm",
    "logaddexp2",
    "piecewise",
    "positive",
    "promote_types",
    "result_type",
    "signbit",
]


bartlett, blackman, hamming, hanning = map(by_numpy, ("bartlett", "blackman", "hamming", "hanning"))


geomspace = by_numpy("geomspace")


def array_equiv(a1: Data, a2: Data) -> Tensor:
    """Whether tensors are equal once they are broadcast."""
    return Tensor(bool(np.array_equiv(concrete(asarray(a1)), concrete(asarray(a2)))))


def array_str(a: Data) -> str:
    """The elements as text."""
    return str(concrete(asarray(a)))


def asfarray(a: Data, dtype: Any = dtypes.float32) -> Tensor:
    """A tensor of floats."""
    return cast(asarray(a), as_dtype(dtype))


def bitwise_not(x: Data, dtype: Any = None) -> Tensor:
    """All bits exchanged."""
    return typed(ops.bitwise_not(asarray(x)), dtype)


invert = bitwise_not


def copysign(x1: Data, x2: Data, dtype: Any = None) -> Tensor:
    """The size of one with the sign of the other."""
    return typed(ops.copysign(asarray(x1), asarray(x2)), dtype)


def fabs(x: Data, dtype: Any = None) -> Tensor:
    """The size of each element."""
    return typed(ops.abs(as_float(asarray(x))), dtype)


def float_power(x1: Data, x2: Data, dtype: Any = None) -> Tensor:
    """The power, of floats."""
    return typed(ops.pow(as_float(asarray(x1)), as_float(asarray(x2))), dtype)


def gcd(x1: Data, x2: Data, dtype: Any = None) -> Tensor:
    """The greatest common divisor."""
    return typed(ops.gcd(asarray(x1), asarray(x2)), dtype)


def lcm(x1: Data, x2: Data, dtype: Any = None) -> Tensor:
    """The least common multiple."""
    return typed(ops.lcm(asarray(x1), asarray(x2)), dtype)


def isneginf(x: Data) -> Tensor:
    """Whether elements are minus infinity."""
    return ops.isneginf(asarray(x))


def isposinf(x: Data) -> Tensor:
    """Whether elements are infinity."""
    return ops.isposinf(asarray(x))


def isscalar(element: Any) -> bool:
    """Whether a value is a number or a string."""
    return bool(np.isscalar(element))


def logaddexp2(x1: Data, x2: Data, dtype: Any = None) -> Tensor:
    """log2(2^a + 2^b)."""
    return typed(ops.logaddexp2(asarray(x1), asarray(x2)), dtype)


def piecewise(x: Data, condlist: Any, funclist: Any, *args: Any, **kw: Any) -> Tensor:
    """Functions or numbers where conditions hold, the last one that does; one more is for elsewhere."""
    value = asarray(x)
    conditions = [asarray(c) for c in (condlist if isinstance(condlist, list | tuple) else [condlist])]
    chosen = list(funclist)
    rest = chosen.pop() if len(chosen) > len(conditions) else 0

    def given(function: Any) -> Any:
        return function(value, *args, **kw) if callable(function) else ops.full_like(value, function)

    result = given(rest)
    for condition, function in zip(conditions, chosen, strict=True):
        result = ops.where(condition, given(function), result)
    return result


def positive(a: Data, dtype: Any = None) -> Tensor:
    """The tensor itself."""
    return typed(asarray(a), dtype)


def promote_types(type1: Any, type2: Any) -> DType:
    """The element type that two become together."""
    return promoted(as_dtype(type1), as_dtype(type2))


def result_type(*arrays_and_dtypes: Any) -> DType:
    """The element type that tensors, numbers and types become together."""
    found = [
        v.dtype if isinstance(v, Tensor) else as_dtype(v) if isinstance(v, DType | str | type) else asarray(v).dtype
        for v in arrays_and_dtypes
    ]
    result = found[0]
    for other in found[1:]:
        result = promoted(result, other)
    return result


def signbit(x: Data, dtype: Any = None) -> Tensor:
    """Whether elements are below 0, or minus 0."""
    return typed(ops.signbit(asarray(x)), dtype)
