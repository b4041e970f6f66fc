"""Properties of `ms` operations: how they are declared, and their plain-value syntax."""

from __future__ import annotations

import re
from collections.abc import Sequence
from io import StringIO
from typing import Any, TypeAlias, cast

import numpy as np
from xdsl.dialects.builtin import (
    I64,
    BoolAttr,
    DenseArrayBase,
    Float64Type,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    StringAttr,
    f64,
    i1,
    i64,
)
from xdsl.ir import Attribute, TypeAttribute
from xdsl.irdl import PropertyDef, VerificationContext, base, opt_prop_def, prop_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.mlir_lexer import MLIRLexer

Plain: TypeAlias = bool | int | float | str | tuple[int, ...] | tuple[float, ...] | Attribute
PlainValue: TypeAlias = bool | int | float | str | Sequence[int] | Sequence[float] | Attribute | np.integer[Any]


def to_attribute(value: PlainValue) -> Attribute:
    """The attribute of a plain value: integers are i64, floats f64, sequences dense arrays (empty ones of i64)."""
    match value:
        case Attribute():
            return value
        case bool():
            return IntegerAttr.from_bool(value)
        case int() | np.integer():
            return IntegerAttr(int(value), i64)
        case float():
            return FloatAttr(value, f64)
        case str():
            return StringAttr(value)
        case _:
            return _array(value)


def _array(values: Sequence[int] | Sequence[float]) -> Attribute:
    if any(isinstance(v, float) for v in values):
        return DenseArrayBase.from_list(f64, [float(v) for v in values])
    return DenseArrayBase.from_list(i64, [int(v) for v in values])


def _elements(array: DenseArrayBase[Any]) -> tuple[int, ...] | tuple[float, ...]:
    return cast(tuple[int, ...] | tuple[float, ...], array.get_values())


def from_attribute(attribute: Attribute) -> Plain:
    """The inverse of `to_attribute`."""
    match attribute:
        case IntegerAttr() if attribute.type == i1:
            return bool(attribute.value.data)
        case IntegerAttr():
            return attribute.value.data
        case FloatAttr():
            return attribute.value.data
        case StringAttr():
            return attribute.data
        case DenseArrayBase():
            return _elements(attribute)
        case _:
            return attribute


_INTS = DenseArrayBase.constr(base(IntegerType))


def ints_property(*default: int):
    """A list of integers with a default."""
    return prop_def(_INTS, default_value=DenseArrayBase.from_list(i64, list(default)))


def required_ints(name: str | None = None):
    """A list of integers that must be given; `name` is the property's where the field has another."""
    return prop_def(_INTS, prop_name=name)


def required_reals():
    """A list of numbers (f64) that must be given."""
    return prop_def(DenseArrayBase.constr(base(Float64Type)))


def required_int():
    """An integer that must be given."""
    return prop_def(IntegerAttr[I64])


def dtype_property():
    """An element type that must be given: `dtype = f16`."""
    return prop_def(TypeAttribute, prop_name="dtype")


def optional_dtype():
    """An element type that may be absent: `dtype = f32`."""
    return opt_prop_def(TypeAttribute, prop_name="dtype")


def optional_real(name: str | None = None):
    """A number (f64) that may be absent; `name` is the property's where the field has another."""
    return opt_prop_def(FloatAttr, prop_name=name)


def int_property(default: int):
    """An integer with a default."""
    return prop_def(IntegerAttr[I64], default_value=IntegerAttr(default, i64))


def flag_property(default: bool):
    """A boolean with a default."""
    return prop_def(BoolAttr, default_value=IntegerAttr.from_bool(default))


def real_property(default: float):
    """A number (f64) with a default."""
    return prop_def(FloatAttr, default_value=FloatAttr(default, f64))


def choice_property(default: str):
    """One of the words that the operation's CHOICES names."""
    return prop_def(StringAttr, default_value=StringAttr(default))


def expects_list(declared: PropertyDef) -> bool:
    """Whether a declared property is a list of integers."""
    return declared.constr.get_bases() == {DenseArrayBase}


def expects_real(declared: PropertyDef) -> bool:
    """Whether a declared property is a float."""
    return declared.constr.get_bases() == {FloatAttr}


_KINDS = (
    ({DenseArrayBase}, "a list of integers"),
    ({FloatAttr}, "a number"),
    ({IntegerAttr}, "an integer"),
    ({StringAttr}, "a quoted word"),
)


def kind_of(declared: PropertyDef) -> str:
    """What a declared property takes, for messages."""
    if declared.default_value in (IntegerAttr.from_bool(False), IntegerAttr.from_bool(True)):
        return "true or false"
    bases = declared.constr.get_bases()
    return next((kind for of, kind in _KINDS if bases == of), "an element type such as f32")


def takes(declared: PropertyDef, value: Any) -> bool:
    """Whether a property takes a value of Python's."""
    try:
        declared.constr.verify(conform(declared, to_attribute(value)), VerificationContext())
    except (VerifyException, TypeError, ValueError, OverflowError):
        return False
    return True


def conform(declared: PropertyDef | None, value: Attribute) -> Attribute:
    """A value as its property wants it: one integer stands for a list of it, and for the float of its size.

    `stride = 2` is `stride = [2, 2]` where the default has two entries, and `axis = 1` is `axis = [1]`.
    """
    number = from_attribute(value)
    if declared is None or isinstance(number, bool) or not isinstance(number, int):
        return value
    if expects_real(declared):
        return FloatAttr(float(number), f64)
    if not expects_list(declared):
        return value
    default = () if declared.default_value is None else from_attribute(declared.default_value)
    return to_attribute([number] * max(len(default) if isinstance(default, tuple) else 0, 1))


def print_value(printer: Printer, value: Attribute) -> None:
    """Print a property in the plain syntax that `parse_value` reads."""
    match value:
        case IntegerAttr() if value.type == i1:
            printer.print_string("true" if value.value.data else "false")
        case IntegerAttr() if value.type == i64:
            printer.print_string(str(value.value.data))
        case FloatAttr() if value.type == f64:
            printer.print_string(_real(value.value.data))
        case DenseArrayBase() if value.elt_type in (i64, f64):
            texts = [_real(v) if isinstance(v, float) else str(v) for v in _elements(value)]
            printer.print_string(f"[{', '.join(texts)}]")
        case _:
            printer.print_attribute(value)


def value_text(value: Attribute) -> str:
    """A property in the plain syntax."""
    stream = StringIO()
    print_value(Printer(stream), value)
    return stream.getvalue()


def _real(value: float) -> str:
    """A float that reads back exactly and is recognisable as one; non-finite values are quoted words."""
    if value != value or value in (float("inf"), float("-inf")):
        return f'"{value}"'
    text = repr(value)
    mantissa, exponent_mark, exponent = text.partition("e")
    if "." not in mantissa:
        mantissa += ".0"
    return mantissa + exponent_mark + exponent


def parse_value(parser: Parser, expects_real: bool) -> Attribute:
    """Read a property value: a list, a number, true/false, a string, or any attribute."""
    if parser.parse_optional_punctuation("["):
        return _parse_list(parser, expects_real)
    if (boolean := parser.parse_optional_boolean()) is not None:
        return IntegerAttr.from_bool(boolean)
    if (number := _parse_optional_number(parser)) is not None:
        return to_attribute(float(number) if expects_real else number)
    if (text := parser.parse_optional_str_literal()) is not None:
        return FloatAttr(float(text), f64) if expects_real and text in ("inf", "-inf", "nan") else StringAttr(text)
    return parser.parse_attribute()


_SHORT_EXPONENT = re.compile(r"-?[0-9]+[eE]([-+]?[0-9]+)")
"""A float without a point, `1e-05`: Python writes it, MLIR's lexer, unlike msc's, takes it for three tokens or more."""


def _parse_optional_number(parser: Parser) -> int | float | None:
    text = _SHORT_EXPONENT.match(parser.lexer.input.content, parser.pos)
    if text is None or type(parser.lexer) is not MLIRLexer:
        return parser.parse_optional_number()
    parser.parse_integer()
    if len(parser.parse_identifier()) == 1:
        parser.parse_optional_punctuation("+")
        parser.parse_integer()
    return float(text[0])


def _parse_number(parser: Parser) -> int | float:
    number = _parse_optional_number(parser)
    return parser.parse_number() if number is None else number


def _parse_list(parser: Parser, expects_real: bool) -> Attribute:
    if parser.parse_optional_punctuation("]"):
        return _array([])
    values = [_parse_number(parser)]
    while parser.parse_optional_punctuation(","):
        values.append(_parse_number(parser))
    parser.parse_punctuation("]")
    return _array([float(v) for v in values] if expects_real else values)
