"""Affine expressions over SSA index values, written in place: `%h * 2 + %kh - 1`, `(%i floordiv 4) mod 3`.

expr   ::= term (('+' | '-') term)*
term   ::= factor (('*' | 'floordiv' | 'ceildiv' | 'mod') integer)*
factor ::= integer | '-' factor | %value | '(' expr ')'
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import IndexType
from xdsl.ir import SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineMap,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

_SUM, _PRODUCT, _ATOM = 0, 1, 2
_DIVISIONS = (AffineBinaryOpKind.FloorDiv, AffineBinaryOpKind.CeilDiv, AffineBinaryOpKind.Mod)
_MAXIMUM_TERMS = 400
_KEYWORDS = {
    AffineBinaryOpKind.Mul: "*",
    AffineBinaryOpKind.FloorDiv: "floordiv",
    AffineBinaryOpKind.CeilDiv: "ceildiv",
    AffineBinaryOpKind.Mod: "mod",
}


def check_affine(op: str, map_: AffineMap, values: int) -> None:
    """Raise VerifyException unless a map is one of `values` index values, with constant divisors and factors."""
    if map_.num_dims != values or map_.num_symbols:
        raise VerifyException(f"{op}: {map_} is no map of {values} index values")
    for expr in map_.results:
        for part in expr.dfs():
            match part:
                case AffineBinaryOpExpr(kind, _, AffineConstantExpr(divisor)) if kind in _DIVISIONS and divisor < 1:
                    raise VerifyException(f"{op}: a divisor is 1 or more, not {divisor}")
                case _:
                    pass
            if not _is_affine(part, values):
                raise VerifyException(f"{op}: '{part}' is not affine: divisors and factors are numbers")


def _is_affine(expr: AffineExpr, values: int) -> bool:
    """Whether the outermost operation of an expression is one that indices may have."""
    match expr:
        case AffineDimExpr():
            return 0 <= expr.position < values
        case AffineConstantExpr() | AffineBinaryOpExpr(AffineBinaryOpKind.Add, _, _):
            return True
        case AffineBinaryOpExpr(AffineBinaryOpKind.Mul, _, AffineConstantExpr()):
            return True
        case AffineBinaryOpExpr(kind, _, AffineConstantExpr()):
            return kind in _DIVISIONS
        case _:
            return False


def affine_tokens(expr: AffineExpr, level: int = _SUM) -> Iterator[str | int]:
    """The expression as text pieces, dimensions as their positions; parentheses only where precedence asks for them."""
    match expr:
        case AffineConstantExpr():
            yield str(expr.value)
        case AffineDimExpr():
            yield expr.position
        case AffineBinaryOpExpr(AffineBinaryOpKind.Add, lhs, rhs):
            yield from _parenthesised(_sum_tokens(lhs, rhs), level > _SUM)
        case AffineBinaryOpExpr(kind, lhs, rhs):
            yield from _parenthesised(_product_tokens(_KEYWORDS[kind], lhs, rhs), level > _PRODUCT)
        case _:
            raise ValueError(f"affine expression {expr} has symbols")


def _sum_tokens(lhs: AffineExpr, rhs: AffineExpr) -> Iterator[str | int]:
    yield from affine_tokens(lhs)
    match rhs:
        case AffineConstantExpr() if rhs.value < 0:
            yield f" - {-rhs.value}"
        case AffineBinaryOpExpr(AffineBinaryOpKind.Mul, factor, AffineConstantExpr(-1)):
            yield " - "
            yield from affine_tokens(factor, _PRODUCT)
        case _:
            yield " + "
            yield from affine_tokens(rhs, _PRODUCT)


def _product_tokens(keyword: str, lhs: AffineExpr, rhs: AffineExpr) -> Iterator[str | int]:
    yield from affine_tokens(lhs, _PRODUCT)
    yield f" {keyword} "
    yield from affine_tokens(rhs, _ATOM)


def _parenthesised(tokens: Iterator[str | int], needed: bool) -> Iterator[str | int]:
    if needed:
        yield "("
    yield from tokens
    if needed:
        yield ")"


def print_affine(printer: Printer, expr: AffineExpr, values: Sequence[SSAValue]) -> None:
    """Print an expression whose dimensions stand for `values`."""
    for token in affine_tokens(expr):
        if isinstance(token, int):
            printer.print_operand(values[token])
        else:
            printer.print_string(token)


@dataclass
class AffineReader:
    """Reads expressions and numbers the values they use: dimension k of every expression is `values[k]`."""

    parser: Parser
    values: list[SSAValue] = field(default_factory=list[SSAValue])
    terms: int = 0

    def map(self, exprs: Sequence[AffineExpr]) -> AffineMap:
        """The map of the expressions read so far."""
        return AffineMap(len(self.values), 0, tuple(exprs))

    def index_list(self) -> list[AffineExpr]:
        """`[expr, expr, ...]`"""
        return self.parser.parse_comma_separated_list(self.parser.Delimiter.SQUARE, self.expression)

    def expression(self) -> AffineExpr:
        total = self._term()
        while True:
            self._count()
            if self.parser.parse_optional_punctuation("+"):
                total = total + self._term()
            elif self.parser.parse_optional_punctuation("-"):
                total = total + self._term() * -1
            else:
                return total

    def _term(self) -> AffineExpr:
        value = self._factor()
        while True:
            self._count()
            if self.parser.parse_optional_punctuation("*"):
                value = value * self.parser.parse_integer(allow_boolean=False)
            elif self.parser.parse_optional_keyword("floordiv"):
                value = value // self._divisor()
            elif self.parser.parse_optional_keyword("ceildiv"):
                value = value.ceil_div(self._divisor())
            elif self.parser.parse_optional_keyword("mod"):
                value = value % self._divisor()
            else:
                return value

    def _count(self) -> None:
        """Bounds how deep the trees of an operation's expressions become, which much of msc walks by recursion."""
        self.terms += 1
        if self.terms > _MAXIMUM_TERMS:
            self.parser.raise_error(f"the indices of an operation have more than {_MAXIMUM_TERMS} terms")

    def _divisor(self) -> int:
        start = self.parser.pos
        divisor = self.parser.parse_integer(allow_boolean=False)
        if divisor < 1:
            self.parser.raise_error(f"a divisor is 1 or more, not {divisor}", start, self.parser.pos)
        return divisor

    def _factor(self) -> AffineExpr:
        if self.parser.parse_optional_punctuation("("):
            value = self.expression()
            self.parser.parse_punctuation(")")
            return value
        if self.parser.parse_optional_punctuation("-"):
            return self._factor() * -1
        if (number := self.parser.parse_optional_integer(allow_boolean=False)) is not None:
            return AffineExpr.constant(number)
        operand = self.parser.parse_unresolved_operand("expected an integer, an index value or '('")
        return AffineExpr.dimension(self._position(self.parser.resolve_operand(operand, IndexType())))

    def _position(self, value: SSAValue) -> int:
        if value not in self.values:
            self.values.append(value)
        return self.values.index(value)
