"""C expressions under construction: text with its precedence, so that parentheses stand only where C needs them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum

from msc.codegen.c.types import CType


class Precedence(IntEnum):
    """How tightly an expression binds; the order of C."""

    CONDITIONAL = 3
    OR = 6
    XOR = 7
    AND = 8
    EQUALITY = 9
    RELATION = 10
    SHIFT = 11
    SUM = 12
    PRODUCT = 13
    UNARY = 14
    POSTFIX = 15
    PRIMARY = 16


@dataclass(frozen=True)
class CExpression:
    """An expression. A `splat` is scalar text that stands for a vector of equal lanes; `type` is the vector's.

    `reads` says that the text reads memory, so it may not move past a write. `ordered` says that it is a constant that
    is not NaN.
    """

    text: str
    type: CType
    precedence: Precedence = Precedence.PRIMARY
    splat: bool = False
    reads: bool = False
    ordered: bool = False

    def at(self, precedence: Precedence) -> str:
        """The text, in parentheses if it binds less tightly than asked."""
        return self.text if self.precedence >= precedence else f"({self.text})"

    @property
    def scalar(self) -> CExpression:
        """A splat as the scalar that its text is."""
        return replace(self, type=self.type.element, splat=False)

    @property
    def is_vector_text(self) -> bool:
        """Whether C sees a vector here."""
        return self.type.is_vector and not self.splat


def call(function: str, type_: CType, *arguments: CExpression) -> CExpression:
    """A call of a pure function."""
    text = ", ".join(a.text for a in arguments)
    return CExpression(f"{function}({text})", type_, reads=any(a.reads for a in arguments))


def cast(type_: CType, value: CExpression) -> CExpression:
    """`(type)value`: conversion of a scalar, reinterpretation of a vector of the same size."""
    text = f"({type_.name}){value.at(Precedence.UNARY)}"
    return CExpression(text, type_, Precedence.UNARY, value.splat, value.reads)
