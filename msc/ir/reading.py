"""`parse_module`: text to a module, or an MscError with code, place, source line and caret for every mistake."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Self

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import MultipleSpansParseError, ParseError
from xdsl.utils.lexer import Input, Span

from msc.ir.errors import CodedParseError
from msc.ir.limits import check_limits, open_brackets
from msc.ir.locations import SourceText
from msc.ir.parsing import SourceParser
from msc.support.collection import paused_collection
from msc.support.diagnostics import Diagnostic, MscError

_CODE_OF_MESSAGE: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), code)
    for pattern, code in (
        (r"is not registered|undefined symbol alias", "MSC0103"),
        (r"used before assignment|not defined|missing block declarations", "MSC0104"),
        (r"already defined|re-declaration|[Dd]uplicate key|given twice", "MSC0105"),
        (r"previously used or defined with type|but used with type", "MSC0109"),
        (r"has no property", "MSC0110"),
        (r"dense literal|denseAttr|Tensor literal|is out of range|Dense literal", "MSC0112"),
    )
)
"""The codes of xDSL's own messages; the release is pinned, so they are stable."""

_UNREGISTERED = re.compile(r"'([\w.$]+)' is not registered")
_OUT_OF_RANGE = re.compile(r"Integer value (-?\d+) is out of range for type (\w+) .* \[(-?\d+), (\d+)\)")
_REASON_LENGTH = 200

AnySpan = Span[str] | Span[bytes]


def parse_module(ctx: Context, text: str, name: str) -> ModuleOp:
    """Parse `text`, the content of file `name`, in which operations get their line and column as location.

    The dialects of `ctx` decide which operations there are; operations are not verified here. Raises MscError.
    """
    source = SourceText(text, name)
    check_limits(source)
    with paused_collection(), _Faults(source) as faults:
        faults.parser = SourceParser(ctx, source)
        return faults.parser.parse_module()


class _Faults:
    """Turns whatever the parser raises into an MscError: on broken input xDSL raises Python exceptions of any kind."""

    def __init__(self, source: SourceText) -> None:
        self.parser: SourceParser | None = None
        self._source = source

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, Exception) and not isinstance(error, MscError):
            raise MscError(self._diagnose(error)) from error

    def _diagnose(self, error: Exception) -> Diagnostic:
        match error:
            case ParseError() if (words := self._plain_words(error)) is not None:
                return words
            case CodedParseError():
                return self._at(error.code, error.msg, error.span, error.help)
            case MultipleSpansParseError():
                notes = tuple(
                    f"{error.ref_text or 'see'} {self._source.location(span.start)}" for span, _ in error.refs
                )
                return replace(self._at(_code_of(error.msg), error.msg, error.span), notes=notes)
            case ParseError():
                return self._at(_code_of(error.msg), error.msg, self._span_of(error))
            case ValueError() if error.args and str(error.args[0]).startswith("Invalid Block name"):
                advice = "as in ^bb0: letters, digits, '_', '$', '.' and '-', and no digit first"
                return self._at("MSC0100", "this is no name of a block", self._here(), advice)
            case _ if (range_ := _OUT_OF_RANGE.search(str(error))) is not None:
                return self._at("MSC0112", _range_text(range_), self._here())
            case _:
                return self._unknown(error)

    def _plain_words(self, error: ParseError) -> Diagnostic | None:
        """What xDSL says in words of its own, in words about the text."""
        text = self._source.text
        if error.msg.strip() == "Could not parse entire input!":
            if not text.strip():
                help_line = "a model is a function @main: func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> { ... }"
                return self._at("MSC0100", "the file is empty", error.span, help_line)
            return self._at("MSC0100", "expected an operation, or the end of the file", error.span)
        if error.msg.strip() == "in block definition":
            opened = open_brackets(text)
            if not text[error.span.start :].strip() and opened:
                note = f"the last one that is open was opened at {self._source.location(opened[-1])}"
                words = f"the file ends, but '{text[opened[-1]]}' is not closed"
                return replace(self._at("MSC0100", words, error.span), notes=(note,))
            return self._at("MSC0100", "expected an operation, a block or '}'", error.span)
        if (range_ := _OUT_OF_RANGE.search(error.msg)) is not None:
            return self._at("MSC0112", _range_text(range_), error.span)
        word = text[error.span.start : error.span.end].removeprefix("x")
        if error.msg.strip() == "Expected shape type." and word.isidentifier():
            advice = "element types are f16, bf16, f32, f64, i1, i8, i16, i32, i64 and ui8 to ui64"
            return self._at("MSC0100", f"there is no element type '{word}'", error.span, advice)
        return None

    def _here(self) -> Span:
        """Where the parser is."""
        position = 0 if self.parser is None else min(self.parser.pos, len(self._source.text))
        return Span(position, position + 1, Input(self._source.text, ""))

    def _at(self, code: str, message: str, span: AnySpan, help: str | None = None) -> Diagnostic:
        return self._source.diagnostic(code, message.strip(), span.start, span.end, help=help)

    def _span_of(self, error: ParseError) -> AnySpan:
        """The span of the name that the message is about where xDSL points at the token after it."""
        name = _UNREGISTERED.match(error.msg)
        if name is None:
            return error.span
        mnemonic = name.group(1).rpartition(".")[2]
        start = self._source.text.rfind(mnemonic, 0, error.span.start)
        return error.span if start < 0 else Span(start, start + len(mnemonic), Input(self._source.text, ""))

    def _unknown(self, error: Exception) -> Diagnostic:
        reason = str(error).partition("\n")[0][:_REASON_LENGTH]
        message = f"the parser failed here: {type(error).__name__}{': ' if reason else ''}{reason}"
        return self._at("MSC0190", message, self._here())


def _range_text(found: re.Match[str]) -> str:
    value, type_, low, end = found.groups()
    return f"{value} does not fit {type_}, which holds {low} to {int(end) - 1}"


def _code_of(message: str) -> str:
    return next((code for pattern, code in _CODE_OF_MESSAGE if pattern.search(message)), "MSC0100")
