"""The exact range of an integer operation on ranges of its operands, before it wraps to a type."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TypeAlias, cast

from xdsl.dialects.builtin import IndexType, IntegerType, Signedness
from xdsl.ir import Attribute

Range: TypeAlias = tuple[int, int]
"""The smallest and the largest value."""

_INDEX_BITS = 64


def type_range(type_: Attribute) -> Range | None:
    """All values of an integer type, None for other types; those of i1 include -1, which is how a signed one reads."""
    if isinstance(type_, IndexType):
        return -(1 << (_INDEX_BITS - 1)), (1 << (_INDEX_BITS - 1)) - 1
    if not isinstance(type_, IntegerType):
        return None
    integer = cast("IntegerType[int, Signedness]", type_)
    bits = integer.width.data
    if integer.signedness.data is Signedness.UNSIGNED:
        return 0, (1 << bits) - 1
    return (-1, 1) if bits == 1 else (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)


def fits(exact: Range, type_: Attribute) -> bool:
    """Whether no value of a range wraps in a type."""
    whole = type_range(type_)
    return whole is not None and whole[0] <= exact[0] and exact[1] <= whole[1]


def union(ranges: Iterable[Range | None]) -> Range | None:
    """The hull of ranges; None if there is none, or one is not known."""
    known = list(ranges)
    found = [r for r in known if r is not None]
    return (min(r[0] for r in found), max(r[1] for r in found)) if found and len(found) == len(known) else None


def _sum(a: Range, b: Range) -> Range:
    return a[0] + b[0], a[1] + b[1]


def _difference(a: Range, b: Range) -> Range:
    return a[0] - b[1], a[1] - b[0]


def _smaller(a: Range, b: Range) -> Range:
    return min(a[0], b[0]), min(a[1], b[1])


def _larger(a: Range, b: Range) -> Range:
    return max(a[0], b[0]), max(a[1], b[1])


def _product(a: Range, b: Range) -> Range:
    corners = [x * y for x in a for y in b]
    return min(corners), max(corners)


def _largest(a: Range) -> int:
    return max(abs(a[0]), abs(a[1]))


def _quotient(divide: Callable[[int, int], int], a: Range, b: Range) -> Range:
    """Exact for a positive constant; else no quotient is larger than the dividend, and division by zero gives zero."""
    if b[0] == b[1] and b[0] > 0:
        return divide(a[0], b[0]), divide(a[1], b[0])
    return -_largest(a), _largest(a)


def _truncated(a: int, b: int) -> int:
    return a // b if a >= 0 else -(-a // b)


def _signed_remainder(a: Range, b: Range) -> Range:
    """It has the sign of the dividend, and is no larger than that, and smaller than the divisor."""
    most = min(_largest(a), max(0, _largest(b) - 1))
    return (-most if a[0] < 0 else 0), (most if a[1] > 0 else 0)


def _unsigned_remainder(a: Range, b: Range) -> Range | None:
    if b[0] <= 0:
        return None
    return 0, (min(a[1], b[1] - 1) if a[0] >= 0 else b[1] - 1)


def _unsigned_quotient(a: Range, b: Range) -> Range | None:
    """Of a division, or of a shift to the right."""
    return (0, a[1]) if a[0] >= 0 else None


def _unsigned_minimum(a: Range, b: Range) -> Range | None:
    """As unsigned numbers negative ones are the largest: what is known not to be negative bounds the other."""
    bounds = [r[1] for r in (a, b) if r[0] >= 0]
    return (min(a[0], b[0]) if len(bounds) == 2 else 0, min(bounds)) if bounds else None


def _unsigned_maximum(a: Range, b: Range) -> Range | None:
    return _larger(a, b) if a[0] >= 0 and b[0] >= 0 else None


def _and(a: Range, b: Range) -> Range | None:
    bounds = [r[1] for r in (a, b) if r[0] >= 0]
    return (0, min(bounds)) if bounds else None


def _or(a: Range, b: Range) -> Range | None:
    if a[0] < 0 or b[0] < 0:
        return None
    return 0, (1 << max(a[1], b[1]).bit_length()) - 1


def _left(a: Range, b: Range) -> Range | None:
    return (a[0] << b[0], a[1] << b[0]) if b[0] == b[1] and 0 <= b[0] < _INDEX_BITS else None


def _right(a: Range, b: Range) -> Range:
    return min(a[0], 0), max(a[1], 0)


def absolute(a: Range) -> Range:
    """Of the smallest integer it wraps to itself, which does not fit."""
    return (0 if a[0] <= 0 <= a[1] else min(abs(a[0]), abs(a[1]))), _largest(a)


EXACT: Mapping[str, Callable[[Range, Range], Range | None]] = {
    "arith.addi": _sum,
    "arith.subi": _difference,
    "arith.muli": _product,
    "arith.divsi": partial(_quotient, _truncated),
    "arith.floordivsi": partial(_quotient, lambda a, b: a // b),
    "arith.ceildivsi": partial(_quotient, lambda a, b: -(-a // b)),
    "arith.divui": _unsigned_quotient,
    "arith.remsi": _signed_remainder,
    "arith.remui": _unsigned_remainder,
    "arith.minsi": _smaller,
    "arith.maxsi": _larger,
    "arith.minui": _unsigned_minimum,
    "arith.maxui": _unsigned_maximum,
    "arith.andi": _and,
    "arith.ori": _or,
    "arith.xori": _or,
    "arith.shli": _left,
    "arith.shrsi": _right,
    "arith.shrui": _unsigned_quotient,
}
"""By operation name; None where the range follows from nothing but the type.

Operations on unsigned numbers have operands that are read as signed here, so that a negative one is a large one.
"""
