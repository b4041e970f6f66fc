"""The parser of msc: xDSL's, with a location on every operation, the caret where the mistake is, and limits.

Overridden methods with a leading underscore belong to the pinned xDSL release; each is covered by a test.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

from xdsl.context import Context
from xdsl.dialects.builtin import (
    UNKNOWN_LOC,
    AnyDenseElement,
    AnyFloat,
    ComplexType,
    DenseIntOrFPElementsAttr,
    DenseResourceAttr,
    FileLineColLoc,
    IndexType,
    IntAttr,
    IntegerType,
    LocationAttr,
    RankedStructure,
    StringAttr,
)
from xdsl.ir import AttributeInvT, Block, Operation, SSAValue, TypeAttribute
from xdsl.parser import AttrParser, ForwardDeclaredValue, Parser, ParserState, UnresolvedOperand
from xdsl.traits import IsolatedFromAbove
from xdsl.utils.exceptions import ParseError, VerifyException
from xdsl.utils.lexer import Input, Position, Span, Token
from xdsl.utils.mlir_lexer import MLIRLexer, MLIRToken, MLIRTokenKind, StringLiteral

from msc.ir.errors import CodedParseError, code_of, help_of
from msc.ir.limits import MAXIMUM_ELEMENTS, MAXIMUM_WRITTEN_ELEMENTS
from msc.ir.locations import SourceText, note_written
from msc.support.diagnostics import Diagnostic, MscError, did_you_mean, near_match

_STRING = re.compile(r'"(?:[^"\\\n\v\f]++|\\(?:["nt\\]|[0-9A-Fa-f]{2}))*+"')
"""Possessive quantifiers: a failed match costs the length of the string, not two to its power."""

_STRING_UNTIL_FAULT = re.compile(r'"(?:[^"\\\n\v\f]++|\\(?:["nt\\]|[0-9A-Fa-f]{2}))*+')


_FRACTION = re.compile(r"\.[0-9]*(?:[eE][+-]?[0-9]+)?|[eE][+-]?[0-9]+")
"""What makes a number a float: a point, or an exponent alone, as Python prints 1e-45. MLIR wants the point."""


class SafeLexer(MLIRLexer):
    """The lexer of `msc.ir.parsing`: linear time on every input, and a telling error for a broken string."""

    _unescaped_characters_regex = _STRING
    _fractional_suffix_regex = _FRACTION

    def _lex_string_literal(self, start_pos: Position) -> MLIRToken:
        if _STRING.match(self.input.content, start_pos) is None:
            self._report_string(start_pos)
        token = super()._lex_string_literal(start_pos)
        return Token(MLIRTokenKind.STRING_LIT, token.span) if _is_text(token) else token

    def _report_string(self, start_pos: Position) -> None:
        prefix = _STRING_UNTIL_FAULT.match(self.input.content, start_pos)
        stop = start_pos + 1 if prefix is None else prefix.end()
        if self.input.at(stop) == "\\":
            span = Span(stop, stop + 2, self.input)
            help_line = r"""write \n, \t, \", \\ or two hexadecimal digits as in \0A"""
            raise CodedParseError(span, "invalid escape sequence in a string", "MSC0100", help_line)
        span = Span(start_pos, stop, self.input)
        raise CodedParseError(span, "this string is not closed on its line", "MSC0101", 'add the closing "')


def _is_text(token: MLIRToken) -> bool:
    """Whether a literal that xDSL takes for bytes is text: the printer escapes the UTF-8 of letters beyond ASCII."""
    if token.kind is not MLIRTokenKind.BYTES_LIT:
        return False
    try:
        StringLiteral.from_span(token.span).bytes_contents.decode()
    except UnicodeDecodeError:
        return False
    return True


_LITERAL_MISMATCH = re.compile(r"Shape mismatch|Hex string|Expected at least one element")
_PLAIN_TENSOR = re.compile(r"tensor<(?:[0-9]+x)*[a-z]+[0-9]+>")
"""Of known sizes and a number type: what it says needs no more than its letters."""
_NO_RESOURCES = "resources hold data in the text; declare an `ms.parameter` and keep its data in the safetensors file"

_RENAMED = {"ms.entry": "ms.extract_slice", "ms.set_entry": "ms.insert_slice", "loop.entry": "loop.slice"}
"""Operations by their former names."""


def _now_called(name: str) -> str | None:
    return f"it is called '{_RENAMED[name]}' now" if name in _RENAMED else None


class SourceParser(Parser):
    """Parses one text. Raises ParseError, of which CodedParseError is the kind with a code, and MscError."""

    def __init__(self, ctx: Context, source: SourceText) -> None:
        super().__init__(ctx, "", source.name)
        self.source = source
        self._file = StringAttr(source.name)
        self._operation_starts: list[int] = []
        self._first_uses: dict[str, Span] = {}
        self._names_defined: list[str] = []
        self._elements_left = 0
        self._location_end = -1
        self._tensor_types: dict[str, TypeAttribute] = {}
        self._parser_state = ParserState(SafeLexer(Input(source.text, source.name)))

    def parse_optional_type(self) -> TypeAttribute | None:
        """A plain tensor type is parsed once: texts repeat few of them, and each takes a dozen tokens."""
        written = _PLAIN_TENSOR.match(self.source.text, self.pos)
        if written is None:
            return super().parse_optional_type()
        known = self._tensor_types.get(written[0])
        if known is not None:
            self._resume_from(written.end())
            return known
        parsed = super().parse_optional_type()
        if parsed is not None:
            self._tensor_types[written[0]] = parsed
        return parsed

    # Operations: where they start, what they are called

    def parse_operation(self) -> Operation:
        pending = set(self.forward_ssa_references)
        self._operation_starts.append(self.pos)
        try:
            op = super().parse_operation()
        except VerifyException as error:
            # Types that are inferred while parsing conflict: xDSL knows no place for this.
            raise CodedParseError(self._operation_span(), str(error), code_of(error), help_of(error)) from error
        self._require_replaced(op)
        start = self._operation_starts.pop()
        if self._location_end == self.pos:
            note_written(op, self.source.location(start))
        elif op.location == UNKNOWN_LOC:
            line, column = self.source.lines.position(start)
            op.location = FileLineColLoc(self._file, IntAttr(line), IntAttr(column))
        if op.has_trait(IsolatedFromAbove, value_if_unregistered=False):
            self._require_defined(self.forward_ssa_references.keys() - pending)
        return op

    def parse_optional_location(self) -> LocationAttr | None:
        location = super().parse_optional_location()
        if location is not None:
            self._location_end = self.pos
        return location

    def _parse_op_result_list(self) -> list[tuple[Span, int]]:
        results = super()._parse_op_result_list()
        self._operation_starts[-1] = self.pos
        return results

    def _get_op_by_name(self, name: str) -> type[Operation]:
        operation = self.ctx.get_optional_op(name, dialect_stack=self._parser_state.dialect_stack)
        if operation is not None:
            return operation
        raise CodedParseError(
            self._operation_span(),
            f"there is no operation '{name}'",
            "MSC0102",
            _now_called(name) or did_you_mean(name, self._operation_names(name)),
        )

    def _operation_span(self) -> Span:
        """The name of the operation that is being parsed, as written."""
        start = self._operation_starts[-1]
        text = self.lexer.input.content
        stop = start
        while stop < len(text) and (text[stop].isalnum() or text[stop] in '_."$'):
            stop += 1
        return Span(start, max(stop, start + 1), self.lexer.input)

    def _operation_names(self, name: str) -> set[str]:
        """Names that could have been meant: of the dialect that is written or meant, and short ones of the scope."""
        dialect = name.partition(".")[0]
        meant = _meant_dialect(dialect, self.ctx.registered_dialect_names)
        if meant is not None:
            self.ctx.get_dialect(meant)
        full = {operation.name for operation in self.ctx.loaded_ops}
        scopes = tuple(f"{scope}." for scope in self._parser_state.dialect_stack)
        return full | {name.partition(".")[2] for name in full if name.startswith(scopes)}

    def _parse_block(self) -> Block:
        """A block; xDSL raises a bare KeyError for the second definition of one that was used before its first."""
        name = self._current_token.span.text[1:]
        known = self.blocks.get(name)
        if known is not None and known[1] is None and name not in self.forward_block_references:
            raise CodedParseError(self._current_token.span, f"re-declaration of block '{name}'", "MSC0105")
        return super()._parse_block()

    # Values: the place of a use that nothing defines

    def resolve_operand(self, operand: UnresolvedOperand, type: AttributeInvT) -> SSAValue[AttributeInvT]:
        if operand.operand_name not in self.ssa_values:
            self._first_uses.setdefault(operand.operand_name, operand.span)
        value = super().resolve_operand(operand, type)
        if isinstance(value, ForwardDeclaredValue) and SSAValue.is_valid_name(operand.operand_name):
            value.name_hint = operand.operand_name
        return value

    def _register_ssa_definition(self, name: str, values: Sequence[SSAValue], span: Span) -> None:
        super()._register_ssa_definition(name, values, span)
        self._names_defined.append(name)
        self._first_uses.pop(name, None)

    def _require_replaced(self, op: Operation) -> None:
        """Refuse an operand that the operation's own regions define: nothing stands for it any more."""
        pending = self.forward_ssa_references
        for operand in op.operands:
            if isinstance(operand, ForwardDeclaredValue) and not any(operand in v.values() for v in pending.values()):
                name = f"'%{operand.name_hint}'" if operand.name_hint else "a value"
                message = f"{name} is used before it is defined, or outside its region"
                raise CodedParseError(self._operation_span(), message, "MSC0204")

    def _require_defined(self, names: Iterable[str]) -> None:
        uses = sorted((self._first_uses[name].start, name) for name in names)
        if uses:
            raise MscError(*(self._undefined(name) for _, name in uses))

    def _undefined(self, name: str) -> Diagnostic:
        candidates = [f"%{known}" for known in {*self._names_defined, *self.ssa_values}]
        help_line = did_you_mean(f"%{name}", candidates)
        use = self._first_uses[name]
        return self.source.diagnostic("MSC0104", f"'%{name}' is not defined", use.start, use.end, help=help_line)

    # Literals: bounded, so that no text exhausts the machine

    def parse_dense_int_or_fp_elements_attr(
        self, type: RankedStructure[AnyDenseElement] | None
    ) -> DenseIntOrFPElementsAttr:
        self._elements_left = MAXIMUM_WRITTEN_ELEMENTS
        if type is not None:
            self._check_element_count(type.get_shape(), self.pos)
        start = self.pos
        try:
            return super().parse_dense_int_or_fp_elements_attr(type)
        except ParseError as error:
            if not _LITERAL_MISMATCH.match(error.msg):
                raise
            # xDSL finds this after the literal and its type, and points at the token that follows.
            raise CodedParseError(Span(start, self.pos, self.lexer.input), error.msg, "MSC0112") from error

    def _parse_dense_literal_type(self) -> RankedStructure[AnyDenseElement]:
        start = self.pos
        type = super()._parse_dense_literal_type()
        self._check_element_count(type.get_shape(), start)
        return type

    def _check_element_count(self, shape: Sequence[int], start: int) -> None:
        count = math.prod(shape)
        if count > MAXIMUM_ELEMENTS:
            self._too_many(f"a literal of {count} elements; at most {MAXIMUM_ELEMENTS} are allowed", start)

    class _BitPattern(Parser._TensorLiteralElement):  # pyright: ignore[reportPrivateUsage]  (xDSL gives no other way in)
        """A hexadecimal element: in a float literal it is the bits, as MLIR prints infinities, NaN and 16777216.0.

        xDSL prints these so too, but reads them as the number.
        """

        def to_type(self, parser: AttrParser, type: AnyFloat | IntegerType | IndexType | ComplexType) -> Any:
            if not isinstance(type, AnyFloat):
                return super().to_type(parser, type)
            size = type.compile_time_size
            if not isinstance(self.value, int) or self.value >= 1 << 8 * size:
                parser.raise_error(f"{self.span.text} has more bits than {type}", self.span)
            return next(type.iter_unpack(self.value.to_bytes(size, "little")))

    def _parse_tensor_literal_element(self) -> Parser._TensorLiteralElement:
        self._elements_left -= 1
        if self._elements_left < 0:
            limit = f"at most {MAXIMUM_WRITTEN_ELEMENTS} may be written out"
            self._too_many(f"too many elements in a literal; {limit}", self.pos)
        element = super()._parse_tensor_literal_element()
        if not element.span.text.lower().startswith("0x"):
            return element
        return self._BitPattern(element.is_negative, element.value, element.span)

    def _too_many(self, message: str, start: int) -> NoReturn:
        span = Span(start, max(self.pos, start + 1), self.lexer.input)
        raise CodedParseError(span, message, "MSC0108", "keep the data in a safetensors file, as an `ms.parameter`")

    def _parse_builtin_dense_resource_attr(self) -> DenseResourceAttr:
        raise CodedParseError(self._current_token.span, "dense_resource is not supported", "MSC0100", _NO_RESOURCES)

    def _parse_file_metadata_dictionary(self) -> None:
        raise CodedParseError(self._current_token.span, "file metadata is not supported", "MSC0100", _NO_RESOURCES)


def _meant_dialect(written: str, registered: Iterable[str]) -> str | None:
    """The dialect that is written or, failing that, the one nearest in name."""
    known = set(registered)
    return written if written in known else near_match(written, known)
