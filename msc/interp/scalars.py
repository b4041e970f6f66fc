"""Scalar operations of upstream dialects (`arith`, `math`, a little `tensor`), on scalars, vectors and arrays alike.

Floats keep their NumPy type, so each operation rounds as in C; values of type `index` are Python integers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeAlias, cast

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FloatAttr, IndexType, IntegerAttr, VectorType, i1
from xdsl.ir import Attribute, Operation

from msc.dialects.arrays import element_dtype
from msc.interp.meanings.elementwise import SCALARS as MEANINGS
from msc.interp.meanings.elementwise import converted, power, truncating_divide
from msc.ir.typed import tensor_type
from msc.poly.scalar import OPERATORS

Scalar: TypeAlias = Callable[..., Any]

_COMPARE: Mapping[str, Callable[[Any, Any], Any]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
_INTEGER_PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
_FLOAT_PREDICATES = tuple("false oeq ogt oge olt ole one ord ueq ugt uge ult ule une uno true".split())


def element_of(type_: Attribute) -> Attribute:
    """The element type of a vector type; a scalar type itself."""
    return cast("VectorType[Attribute]", type_).element_type if isinstance(type_, VectorType) else type_


def _constant(op: Operation) -> Any:
    value = cast(arith.ConstantOp, op).value
    match value:
        case DenseIntOrFPElementsAttr():
            return _dense(value)
        case IntegerAttr() | FloatAttr() if isinstance(value.type, IndexType):
            return int(value.value.data)
        case IntegerAttr() | FloatAttr():
            return np.asarray(value.value.data).astype(element_dtype(value.type))[()]
        case _:
            raise TypeError(f"arith.constant of {value}")


def _dense(value: DenseIntOrFPElementsAttr) -> Any:
    type_ = cast("VectorType[Attribute]", value.type)
    dtype = element_dtype(type_.element_type)
    raw = np.frombuffer(value.data.data, np.int8 if dtype == np.bool_ else dtype)
    return (raw != 0 if dtype == np.bool_ else raw).reshape(type_.get_shape())


def _unsigned(x: Any) -> Any:
    """The same bits as an unsigned integer; a Python integer (an index) is its own."""
    return x if isinstance(x, int) or x.dtype.kind != "i" else x.view(f"u{x.dtype.itemsize}")


def _compare_integers(op: Operation, a: Any, b: Any) -> Any:
    word = _INTEGER_PREDICATES[cast(arith.CmpiOp, op).predicate.value.data]
    if word[0] == "u":
        a, b = _unsigned(a), _unsigned(b)
    return _COMPARE[word[-2:]](a, b)


def _compare_floats(op: Operation, a: Any, b: Any) -> Any:
    word = _FLOAT_PREDICATES[cast(arith.CmpfOp, op).predicate.value.data]
    unordered = np.isnan(a) | np.isnan(b)
    if word in ("false", "true"):
        return np.full_like(unordered, word == "true")
    if word in ("ord", "uno"):
        return unordered if word == "uno" else ~unordered
    compared = _COMPARE[word[1:]](a, b)
    return (compared | unordered) if word[0] == "u" else (compared & ~unordered)


def _select(op: Operation, condition: Any, a: Any, b: Any) -> Any:
    if np.ndim(condition) == 0:
        return a if condition else b
    return cast(Any, np.where(condition, a, b))


def _convert(op: Operation, x: Any) -> Any:
    """To the result's element type: floats truncate to integers."""
    type_ = element_of(op.results[0].type)
    if isinstance(type_, IndexType):
        return int(x)
    return converted(np.asarray(x), element_dtype(type_))[()]


def _convert_signed(op: Operation, x: Any) -> Any:
    """As `_convert`; the one bit of an i1 is its sign."""
    return _convert(op, -np.asarray(x, np.int8)[()] if np.asarray(x).dtype == np.bool_ else x)


def _truncate(op: Operation, x: Any) -> Any:
    """To fewer bits; an i1 keeps the last one, where NumPy would ask for not zero."""
    return _convert(op, x & 1 if element_of(op.results[0].type) == i1 else x)


def _convert_unsigned(op: Operation, x: Any) -> Any:
    return _convert(op, _unsigned(x) if not isinstance(x, np.bool_) else x)


def _float_to_unsigned(op: Operation, x: Any) -> Any:
    dtype = element_dtype(element_of(op.results[0].type))
    return converted(np.asarray(x), np.dtype(f"u{dtype.itemsize}")).view(dtype)[()]


def _bitcast(op: Operation, x: Any) -> Any:
    return np.asarray(x).view(element_dtype(element_of(op.results[0].type)))[()]


def _remainder(op: Operation, a: Any, b: Any) -> Any:
    return (abs(a) % abs(b)) * (-1 if a < 0 else 1) if isinstance(a, int) else np.fmod(a, b)


def _divide(op: Operation, a: Any, b: Any) -> Any:
    if isinstance(a, int):
        return (abs(a) // abs(b)) * (1 if (a < 0) == (b < 0) else -1)
    return truncating_divide(np.asarray(a), np.asarray(b))[()]


def _integer_power(op: Operation, a: Any, b: Any) -> Any:
    return power(np.asarray(a), np.asarray(b))[()]


def _fma(op: Operation, a: Any, b: Any, c: Any) -> Any:
    """One rounding, to the accuracy of double."""
    wide = np.asarray(a, np.float64) * np.asarray(b, np.float64) + np.asarray(c, np.float64)
    return wide.astype(element_dtype(element_of(op.results[0].type)))[()]


def _on_arrays(function: Callable[..., Any], op: Operation, *args: Any) -> Any:
    return function(*map(np.asarray, args))[()]


def _shift(function: Callable[[Any, Any], Any], *, unsigned: bool = False) -> Scalar:
    def shift(op: Operation, a: Any, b: Any) -> Any:
        if isinstance(a, int):
            return a << b if function is np.left_shift else a >> b
        return function(_unsigned(a), _unsigned(b)).view(a.dtype) if unsigned else function(a, b)

    return shift


def _plain(function: Callable[..., Any], op: Operation, *args: Any) -> Any:
    return function(*args)


def _unsigned_result(function: Callable[[Any, Any], Any], op: Operation, a: Any, b: Any) -> Any:
    """An operation on the unsigned reading of integers, its result read as signed again."""
    result = function(_unsigned(a), _unsigned(b))
    return result if isinstance(a, int) else result.view(a.dtype)


def _extract(op: Operation, tensor: Any, *indices: Any) -> Any:
    return tensor[tuple(map(int, indices))]


def _from_elements(op: Operation, *elements: Any) -> Any:
    type_ = cast(Any, op.results[0].type)
    return np.array(elements, element_dtype(type_.element_type)).reshape(type_.get_shape())


def _empty(op: Operation) -> Any:
    """A tensor whose elements nobody may read before they are set."""
    type_ = tensor_type(op.results[0])
    return np.zeros(type_.get_shape(), element_dtype(type_.element_type))


def _largest(a: Any, b: Any) -> Any:
    return max(a, b) if isinstance(a, int) else np.maximum(a, b)


def _smallest(a: Any, b: Any) -> Any:
    return min(a, b) if isinstance(a, int) else np.minimum(a, b)


_ARITH: dict[str, Callable[[Any, Any], Any]] = {
    **dict.fromkeys(("addi", "addf"), lambda a, b: a + b),
    **dict.fromkeys(("subi", "subf"), lambda a, b: a - b),
    **dict.fromkeys(("muli", "mulf"), lambda a, b: a * b),
    "divf": lambda a, b: a / b,
    "andi": lambda a, b: a & b,
    "ori": lambda a, b: a | b,
    "xori": lambda a, b: a ^ b,
    "floordivsi": lambda a, b: a // b,
    "ceildivsi": lambda a, b: -(-a // b),
    "maxsi": _largest,
    "minsi": _smallest,
    "maximumf": np.maximum,
    "minimumf": np.minimum,
    "maxnumf": np.fmax,
    "minnumf": np.fmin,
}

_MATH: dict[str, Callable[..., Any]] = {
    **{name: getattr(np, name) for name in ("log10", "cbrt", "copysign", "isnan", "isinf", "isfinite")},
    "absi": np.abs,
}
"""Those that no scalar operator stands for."""

_CONVERSIONS = ("extf", "truncf", "fptosi", "index_cast")

SCALARS: Mapping[str, Scalar] = {
    **{o.mlir: partial(_on_arrays, MEANINGS[o.name]) for o in OPERATORS.values() if o.mlir.startswith("math.")},
    "loop.dot_bytes": partial(_on_arrays, MEANINGS["dot_bytes"]),
    "arith.constant": _constant,
    "arith.cmpi": _compare_integers,
    "arith.cmpf": _compare_floats,
    "arith.select": _select,
    "arith.divsi": _divide,
    "arith.remsi": _remainder,
    "arith.remf": _remainder,
    "arith.negf": partial(_plain, np.negative),
    "arith.divui": partial(_unsigned_result, lambda a, b: a // b),
    "arith.remui": partial(_unsigned_result, lambda a, b: a % b),
    "arith.shli": _shift(np.left_shift),
    "arith.shrsi": _shift(np.right_shift),
    "arith.shrui": _shift(np.right_shift, unsigned=True),
    "arith.maxui": partial(_unsigned_result, np.maximum),
    "arith.minui": partial(_unsigned_result, np.minimum),
    "arith.bitcast": _bitcast,
    "arith.extsi": _convert_signed,
    "arith.sitofp": _convert_signed,
    "arith.trunci": _truncate,
    "arith.extui": _convert_unsigned,
    "arith.uitofp": _convert_unsigned,
    "arith.index_castui": _convert_unsigned,
    "arith.fptoui": _float_to_unsigned,
    "math.ipowi": _integer_power,
    "math.fma": _fma,
    "vector.fma": _fma,
    "tensor.extract": _extract,
    "tensor.from_elements": _from_elements,
    "tensor.empty": _empty,
    **{f"arith.{name}": _convert for name in _CONVERSIONS},
    **{f"arith.{name}": partial(_plain, function) for name, function in _ARITH.items()},
    **{f"math.{name}": partial(_plain, function) for name, function in _MATH.items()},
}
"""Operation name -> function of the operation and its operands' values."""
