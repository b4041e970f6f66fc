"""Which types the operations take that `loop.lanes` stands for: as upstream has them, lane by lane."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias, cast

from xdsl.dialects.builtin import AnyFloat, IntegerType, VectorType, f32, i1, i32
from xdsl.ir import Attribute

Rule: TypeAlias = Callable[[Sequence[Attribute], Attribute], bool]
"""Whether element types of operands and of the result fit an operation."""


def lane_types_fit(operation: str, operands: Sequence[Attribute], result: Attribute) -> bool:
    """Whether an operation takes these types; one that is not known is left to the stage's list of operations."""
    rule = _RULES.get(operation)
    if rule is None:
        return True
    lanes = {_lanes(type_) for type_ in (*operands, result)}
    if operation == "arith.select":  # One condition may choose whole vectors.
        lanes = {_lanes(type_) for type_ in (*operands[1:], result)} | ({_lanes(o) for o in operands[:1]} - {0})
    return len(lanes) == 1 and rule([_element(type_) for type_ in operands], _element(result))


def product_types_fit(operands: Sequence[Attribute], result: Attribute, types: Sequence[str]) -> bool:
    """Whether these are a sum, and as many terms of two factors of these types: of as many lanes each, or scalars."""
    total, *factors = operands
    lanes, half = _lanes(total), len(factors) // 2
    sides = zip((factors[:half], factors[half:]), types, strict=True)
    return (
        half > 0
        and len(factors) == 2 * half
        and result == total
        and _element(total) in (f32, i32)
        and all(len(set(side)) == 1 and _lanes(side[0]) in (0, lanes) for side, _ in sides)
        and all(str(_element(each)) == name.lstrip("u") for each, name in zip(factors[::half], types, strict=True))
    )


def _lanes(type_: Attribute) -> int:
    """The lanes of a vector; 0 for a scalar."""
    return cast(VectorType[Attribute], type_).get_shape()[0] if isinstance(type_, VectorType) else 0


def _element(type_: Attribute) -> Attribute:
    return cast(VectorType[Attribute], type_).element_type if isinstance(type_, VectorType) else type_


def _bits(type_: Attribute) -> int:
    return type_.bitwidth if isinstance(type_, IntegerType | AnyFloat) else 0


def _is_integer(type_: Attribute) -> bool:
    return isinstance(type_, IntegerType)


def _is_float(type_: Attribute) -> bool:
    return isinstance(type_, AnyFloat)


def _compares(kind: Callable[[Attribute], bool]) -> Rule:
    return lambda given, result: len(given) == 2 and kind(given[0]) and given[0] == given[1] and result == i1


def _converts(
    source: Callable[[Attribute], bool], target: Callable[[Attribute], bool], grows: Callable[[int, int], bool]
) -> Rule:
    return lambda given, result: (
        len(given) == 1 and source(given[0]) and target(result) and grows(_bits(given[0]), _bits(result))
    )


def _selects(given: Sequence[Attribute], result: Attribute) -> bool:
    return len(given) == 3 and given[0] == i1 and given[1] == given[2] == result


def _of_two_floats(given: Sequence[Attribute], result: Attribute) -> bool:
    return len(given) == 2 and _is_float(result) and given[0] == given[1] == result


def _dots_bytes(given: Sequence[Attribute], result: Attribute) -> bool:
    return len(given) == 3 and all(each == i32 for each in (*given, result))


def _any(source: int, target: int) -> bool:
    return True


def _wider(source: int, target: int) -> bool:
    return source < target


def _narrower(source: int, target: int) -> bool:
    return source > target


def _same(source: int, target: int) -> bool:
    return source == target


def _is_number(type_: Attribute) -> bool:
    return _is_integer(type_) or _is_float(type_)


_RULES: Mapping[str, Rule] = {
    "arith.cmpf": _compares(_is_float),
    "arith.cmpi": _compares(_is_integer),
    "arith.select": _selects,
    "arith.remf": _of_two_floats,
    "math.copysign": _of_two_floats,
    "loop.dot_bytes": _dots_bytes,
    "arith.sitofp": _converts(_is_integer, _is_float, _any),
    "arith.uitofp": _converts(_is_integer, _is_float, _any),
    "arith.fptosi": _converts(_is_float, _is_integer, _any),
    "arith.fptoui": _converts(_is_float, _is_integer, _any),
    "arith.extsi": _converts(_is_integer, _is_integer, _wider),
    "arith.extui": _converts(_is_integer, _is_integer, _wider),
    "arith.trunci": _converts(_is_integer, _is_integer, _narrower),
    "arith.extf": _converts(_is_float, _is_float, _wider),
    "arith.truncf": _converts(_is_float, _is_float, _narrower),
    "arith.bitcast": _converts(_is_number, _is_number, _same),
}
