"""Affine expressions as C: sums in the order of the IR, constants folded, divisions plain where the sign is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from xdsl.ir.affine import AffineBinaryOpExpr, AffineBinaryOpKind, AffineConstantExpr, AffineDimExpr, AffineExpr

from msc.codegen.c.types import CType, no_c_form
from msc.codegen.c.values import CExpression, Precedence

INDEX = CType("index")


@dataclass(frozen=True)
class IndexExpression:
    """An index value: its C expression and the range it is known to lie in; equal ends are a constant."""

    value: CExpression
    low: int | None = None
    high: int | None = None

    @property
    def constant(self) -> int | None:
        return self.low if self.low is not None and self.low == self.high else None


@cache
def constant_index(number: int) -> IndexExpression:
    """A known index."""
    # C has no negative literals: the least number would be minus one that does not fit.
    text = "INT64_MIN" if number == -(2**63) else str(number)
    precedence = Precedence.UNARY if text.startswith("-") else Precedence.PRIMARY
    return IndexExpression(CExpression(text, INDEX, precedence), number, number)


@dataclass(frozen=True)
class _Sum:
    """`terms` (text, coefficient) in order, and a constant."""

    terms: tuple[tuple[IndexExpression, int], ...]
    constant: int = 0


def affine_index(expr: AffineExpr, dims: Sequence[IndexExpression], helpers: set[str]) -> IndexExpression:
    """The expression over the given index values; names of prelude functions that its text needs go to `helpers`."""
    if type(expr) is AffineConstantExpr:
        return constant_index(expr.value)
    index = dims[expr.position] if type(expr) is AffineDimExpr else None
    if index is not None and index.constant is None and index.value.precedence >= Precedence.SUM:
        return index  # most indices are variables of loops
    return _render(_linear(expr, dims, helpers))


def _linear(expr: AffineExpr, dims: Sequence[IndexExpression], helpers: set[str]) -> _Sum:
    match expr:
        case AffineConstantExpr():
            return _Sum((), expr.value)
        case AffineDimExpr():
            return _atom(dims[expr.position])
        case AffineBinaryOpExpr(AffineBinaryOpKind.Add, lhs, rhs):
            return _add(_linear(lhs, dims, helpers), _linear(rhs, dims, helpers))
        case AffineBinaryOpExpr(AffineBinaryOpKind.Mul, lhs, rhs):
            return _multiply(_linear(lhs, dims, helpers), _linear(rhs, dims, helpers))
        case AffineBinaryOpExpr(kind, lhs, rhs):
            divisor = affine_index(rhs, dims, helpers).constant
            if divisor is None or divisor < 1:
                raise no_c_form(f"the affine expression {expr}")
            return _atom(_divide(kind, affine_index(lhs, dims, helpers), divisor, helpers))
        case _:
            raise no_c_form(f"the affine expression {expr}")


def _atom(index: IndexExpression) -> _Sum:
    return _Sum((), index.constant) if index.constant is not None else _Sum(((index, 1),))


def _add(a: _Sum, b: _Sum) -> _Sum:
    coefficients: dict[str, int] = {}
    atoms: dict[str, IndexExpression] = {}
    for index, coefficient in (*a.terms, *b.terms):
        atoms[index.value.text] = index
        coefficients[index.value.text] = coefficients.get(index.value.text, 0) + coefficient
    terms = tuple((atoms[text], c) for text, c in coefficients.items() if c)
    return _Sum(terms, a.constant + b.constant)


def _multiply(a: _Sum, b: _Sum) -> _Sum:
    if a.terms and b.terms:
        raise no_c_form("a product of two index values in an affine expression")
    linear, factor = (a, b.constant) if not b.terms else (b, a.constant)
    return _Sum(tuple((i, c * factor) for i, c in linear.terms if c * factor), linear.constant * factor)


def _render(total: _Sum) -> IndexExpression:
    """Positive terms first, the constant last unless nothing else can begin the sum: `7 - i`."""
    if not total.terms:
        return constant_index(total.constant)
    ordered = sorted(total.terms, key=lambda term: term[1] < 0)
    constant = total.constant
    if ordered[0][1] < 0 and constant > 0:
        text, precedence, rest, constant = str(constant), Precedence.PRIMARY, ordered, 0
    else:
        text, precedence = _product(ordered[0][0].value, ordered[0][1])
        rest = ordered[1:]
    for index, coefficient in rest:
        piece, _ = _product(index.value, abs(coefficient), Precedence.PRODUCT)
        text, precedence = f"{text} {'-' if coefficient < 0 else '+'} {piece}", Precedence.SUM
    if constant:
        text, precedence = f"{text} {'-' if constant < 0 else '+'} {abs(constant)}", Precedence.SUM
    reads = any(index.value.reads for index, _ in total.terms)
    low, high = _range(total)
    return IndexExpression(CExpression(text, INDEX, precedence, reads=reads), low, high)


def _product(value: CExpression, coefficient: int, least: Precedence = Precedence.SUM) -> tuple[str, Precedence]:
    if coefficient == 1:
        return value.at(least), max(value.precedence, least)
    if coefficient == -1:
        return f"-{value.at(Precedence.PRIMARY)}", Precedence.UNARY
    return f"{value.at(Precedence.PRODUCT)} * {coefficient}", Precedence.PRODUCT


def _range(total: _Sum) -> tuple[int | None, int | None]:
    low: int | None = total.constant
    high: int | None = total.constant
    for index, c in total.terms:
        least, most = (index.low, index.high) if c > 0 else (index.high, index.low)
        low = None if low is None or least is None else low + least * c
        high = None if high is None or most is None else high + most * c
    return low, high


def _divide(kind: AffineBinaryOpKind, dividend: IndexExpression, divisor: int, helpers: set[str]) -> IndexExpression:
    if dividend.constant is not None:
        return constant_index(_fold(kind, dividend.constant, divisor))
    if kind is AffineBinaryOpKind.CeilDiv:
        text = f"{dividend.value.at(Precedence.SUM)} + {divisor - 1}"
        shifted = IndexExpression(
            CExpression(text, INDEX, Precedence.SUM, reads=dividend.value.reads), *_shift(dividend, divisor - 1)
        )
        return _divide(AffineBinaryOpKind.FloorDiv, shifted, divisor, helpers)
    low, high = _divided_range(kind, dividend, divisor)
    plain = dividend.low is not None and dividend.low >= 0
    return IndexExpression(_division_text(kind, dividend.value, divisor, plain, helpers), low, high)


def _division_text(
    kind: AffineBinaryOpKind, dividend: CExpression, divisor: int, plain: bool, helpers: set[str]
) -> CExpression:
    floor = kind is AffineBinaryOpKind.FloorDiv
    if plain:
        text = f"{dividend.at(Precedence.PRODUCT)} {'/' if floor else '%'} {divisor}"
        return CExpression(text, INDEX, Precedence.PRODUCT, reads=dividend.reads)
    function = "msc_floor_div" if floor else "msc_floor_mod"
    helpers.add("floor_div")
    return CExpression(f"{function}({dividend.text}, {divisor})", INDEX, reads=dividend.reads)


def _shift(index: IndexExpression, by: int) -> tuple[int | None, int | None]:
    return (None if index.low is None else index.low + by, None if index.high is None else index.high + by)


def _divided_range(kind: AffineBinaryOpKind, dividend: IndexExpression, divisor: int) -> tuple[int | None, int | None]:
    if kind is AffineBinaryOpKind.Mod:
        return 0, divisor - 1
    low = None if dividend.low is None else dividend.low // divisor
    return low, None if dividend.high is None else dividend.high // divisor


def _fold(kind: AffineBinaryOpKind, dividend: int, divisor: int) -> int:
    if kind is AffineBinaryOpKind.Mod:
        return dividend % divisor
    return dividend // divisor if kind is AffineBinaryOpKind.FloorDiv else -(-dividend // divisor)
