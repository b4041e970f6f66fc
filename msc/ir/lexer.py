"""xDSL's MLIR lexer made safe: its string-literal pattern takes exponential time on an unterminated string."""

from __future__ import annotations

import re

from xdsl.utils.lexer import Position, Span, Token
from xdsl.utils.mlir_lexer import MLIRLexer, MLIRToken, MLIRTokenKind, StringLiteral

from msc.ir.errors import CodedParseError

_STRING = re.compile(r'"(?:[^"\\\n\v\f]++|\\(?:["nt\\]|[0-9A-Fa-f]{2}))*+"')
"""Possessive quantifiers: a failed match costs the length of the string, not two to its power."""

_STRING_UNTIL_FAULT = re.compile(r'"(?:[^"\\\n\v\f]++|\\(?:["nt\\]|[0-9A-Fa-f]{2}))*+')


class SafeLexer(MLIRLexer):
    """The lexer of `msc.ir.parsing`: linear time on every input, and a telling error for a broken string."""

    _unescaped_characters_regex = _STRING

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
