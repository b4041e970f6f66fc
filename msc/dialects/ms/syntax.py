"""The custom assembly that all `ms` operations share (see base.py for what it looks like)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import DenseArrayBase, StringAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    OpDef,
    OptOperandDef,
    OptPropertyDef,
    PropertyDef,
    VarOperandDef,
    VerificationContext,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.utils.exceptions import ParseError, VerifyException

from msc.dialects.element_types import ELEMENT_TYPES
from msc.dialects.ms.properties import conform, expects_real, kind_of, parse_value, print_value
from msc.ir.errors import CodedVerifyException, InvalidAttribute
from msc.support.diagnostics import near_match

SEGMENTS = "operandSegmentSizes"
"""Property that says which optional operands are present, where their number alone does not."""


@dataclass(frozen=True)
class WrittenOperation:
    """An operation as the text has it; `result_types` is None where the type part is left out."""

    operands: Sequence[SSAValue | None]
    properties: Mapping[str, Attribute]
    attributes: Mapping[str, Attribute]
    result_types: Sequence[Attribute] | None


def parse_operation(parser: Parser, definition: OpDef) -> WrittenOperation:
    """Read everything after the operation's name."""
    operands = _parse_operand_list(parser)
    properties, attributes = _parse_dictionary(parser, definition)
    result_types = None
    if parser.parse_optional_punctuation(":"):
        position = parser.pos
        inputs, result_types = _parse_function_type(parser)
        if len(inputs) != len(operands):
            parser.raise_error(f"{len(operands)} operands, but {len(inputs)} operand types", position, parser.pos)
        values = [parser.resolve_operand(o, t) for o, t in zip(operands, inputs, strict=True)]
    else:
        values = [_resolve_defined(parser, operand) for operand in operands]
    segments = properties.pop(SEGMENTS, None)
    return WrittenOperation(_spread(values, segments), properties, attributes, result_types)


def _parse_operand_list(parser: Parser) -> list[UnresolvedOperand]:
    first = parser.parse_optional_unresolved_operand()
    if first is None:
        return []
    operands = [first]
    while parser.parse_optional_punctuation(","):
        operands.append(parser.parse_unresolved_operand())
    return operands


def _parse_function_type(parser: Parser) -> tuple[Sequence[Attribute], Sequence[Attribute]]:
    inputs = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_type)
    parser.parse_punctuation("->")
    outputs = parser.parse_optional_comma_separated_list(parser.Delimiter.PAREN, parser.parse_type)
    return inputs, outputs if outputs is not None else [parser.parse_type()]


def _resolve_defined(parser: Parser, operand: UnresolvedOperand) -> SSAValue:
    """The value of an operand written without a type: it must have been defined above."""
    values = parser.ssa_values.get(operand.operand_name)
    if values is None or operand.index >= len(values):
        near = near_match(operand.operand_name, parser.ssa_values)
        hint = f"; did you mean '%{near}'?" if near else ""
        parser.raise_error(
            f"'%{operand.operand_name}' is not defined above (an operand written without types must be){hint}",
            operand.span,
        )
    return values[operand.index]


@dataclass
class _Dictionary:
    """`{name = value, ...}`: names that the operation declares are properties; others must be dotted attributes."""

    parser: Parser
    definition: OpDef
    properties: dict[str, Attribute] = field(default_factory=dict[str, Attribute])
    attributes: dict[str, Attribute] = field(default_factory=dict[str, Attribute])

    def parse(self) -> None:
        self.parser.parse_optional_comma_separated_list(self.parser.Delimiter.BRACES, self._entry)
        for name, declared in self.definition.properties.items():
            required = not isinstance(declared, OptPropertyDef) and declared.default_value is None
            if required and name not in self.properties and name != SEGMENTS:
                raise InvalidAttribute(f"{self.definition.name} needs property '{name}'")

    def _entry(self) -> None:
        position = self.parser.pos
        name = self.parser.parse_identifier_or_str_literal(" as the name of a property")
        if name in self.properties or name in self.attributes:
            self.parser.raise_error(f"property '{name}' is given twice", position, self.parser.pos)
        declared = self.definition.properties.get(name)
        if declared is None and "." not in name and name != SEGMENTS:
            self.parser.raise_error(self._unknown(name), position, self.parser.pos)
        self.parser.parse_punctuation("=")
        if declared is None:
            value = parse_value(self.parser, expects_real=False)
            (self.properties if name == SEGMENTS else self.attributes)[name] = value
        else:
            self.properties[name] = self._value(name, declared)

    def _unknown(self, name: str) -> str:
        near = near_match(name, self.definition.properties)
        known = ", ".join(n for n in self.definition.properties if n != SEGMENTS) or "none"
        hint = f"did you mean '{near}'?" if near else f"its properties: {known}"
        return f"{self.definition.name} has no property '{name}'; {hint}"

    def _value(self, name: str, declared: PropertyDef) -> Attribute:
        position = self.parser.pos
        value = conform(declared, self._parsed(name, declared))
        try:
            declared.constr.verify(value, VerificationContext())
        except VerifyException:
            message = f"{self.definition.name}: {value} is not {kind_of(declared)}, which property '{name}' takes"
            message += _meant_type(value) if declared.constr.get_bases() != {StringAttr} else ""
            self.parser.raise_error(message, position, self.parser.pos)
        return value

    def _parsed(self, name: str, declared: PropertyDef) -> Attribute:
        """The value as it is written; a bare word, which is none, is told what it may have been meant for."""
        position = self.parser.pos
        word = _WORD.match(self.parser.lexer.input.content, position)
        try:
            return parse_value(self.parser, expects_real(declared))
        except ParseError:
            if word is None:
                raise
            message = f"{self.definition.name}: {word[0]} is not {kind_of(declared)}, which property '{name}' takes"
            is_text = declared.constr.get_bases() == {StringAttr}
            message += f'; did you mean "{word[0]}"?' if is_text else _meant_type(StringAttr(word[0]))
            self.parser.raise_error(message, position, position + len(word[0]))


_WORD = re.compile(r"[A-Za-z_]\w*")
_NUMPY_WORDS = (("uint", "ui"), ("int", "i"), ("bfloat", "bf"), ("float", "f"), ("bool", "i1"))


def _meant_type(value: Attribute) -> str:
    """The element type that NumPy and MindSpore call by a word."""
    word = value.data if isinstance(value, StringAttr) else ""
    names = (word.replace(theirs, ours) for theirs, ours in _NUMPY_WORDS if word.startswith(theirs))
    name = next(names, word)
    return f"; did you mean {name}?" if name in ELEMENT_TYPES else ""


def _parse_dictionary(parser: Parser, definition: OpDef) -> tuple[dict[str, Attribute], dict[str, Attribute]]:
    dictionary = _Dictionary(parser, definition)
    dictionary.parse()
    return dictionary.properties, dictionary.attributes


def print_operation(printer: Printer, op: IRDLOperation) -> None:
    """Print everything after the operation's name."""
    if op.operands:
        printer.print_string(" ")
        printer.print_list(op.operands, printer.print_operand)
    _print_dictionary(printer, op)
    printer.print_string(" : ")
    printer.print_function_type(op.operand_types, op.result_types)


def _print_dictionary(printer: Printer, op: IRDLOperation) -> None:
    entries = {**_shown_properties(op), **op.attributes}
    if not entries:
        return
    printer.print_string(" {")
    for i, (name, value) in enumerate(entries.items()):
        printer.print_string(", " if i else "")
        printer.print_identifier_or_string_literal(name)
        printer.print_string(" = ")
        print_value(printer, value)
    printer.print_string("}")


def _shown_properties(op: IRDLOperation) -> dict[str, Attribute]:
    definition = op.get_irdl_definition()
    shown = {
        name: value
        for name, value in op.properties.items()
        if name != SEGMENTS and value != definition.properties[name].default_value
    }
    segments = op.properties.get(SEGMENTS)
    if isinstance(segments, DenseArrayBase) and not _is_prefix(segments.get_values()):
        shown[SEGMENTS] = segments
    return shown


def _is_prefix(segments: Sequence[int | float]) -> bool:
    """Whether the absent optional operands all stand last, so that the number of operands says it all."""
    present = [n > 0 for n in segments]
    return present == sorted(present, reverse=True) and all(n <= 1 for n in segments[:-1])


def _spread(values: Sequence[SSAValue], segments: Attribute | None) -> Sequence[SSAValue | None]:
    """Put None where the segment sizes say that an optional operand is absent."""
    if not isinstance(segments, DenseArrayBase):
        return values
    spread: list[SSAValue | None] = []
    rest = iter(values)
    for size in segments.get_values():
        spread.extend([next(rest) for _ in range(int(size))] or [None])
    return spread


def group_operands(
    definition: OpDef, operands: Sequence[SSAValue | Operation | None]
) -> list[SSAValue | Operation | Sequence[SSAValue | Operation]]:
    """Operands as IRDL wants them: one entry a declared operand, lists for optional and variadic ones.

    At most the last declared operand is variadic; it takes all that is left.
    """
    grouped: list[SSAValue | Operation | Sequence[SSAValue | Operation]] = []
    rest = list(operands)
    for name, declared in definition.operands:
        if isinstance(declared, OptOperandDef):
            value = rest.pop(0) if rest else None
            grouped.append([] if value is None else [value])
        elif isinstance(declared, VarOperandDef):
            grouped.append([value for value in rest if value is not None])
            rest = []
        else:
            value = rest.pop(0) if rest else None
            if value is None:
                raise CodedVerifyException(f"{definition.name}: operand '{name}' is missing")
            grouped.append(value)
    if rest:
        raise CodedVerifyException(
            f"{definition.name} takes at most {len(definition.operands)} operands, not {len(operands)}"
        )
    return grouped
