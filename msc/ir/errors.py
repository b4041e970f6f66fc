"""The exceptions that operations raise while they are parsed and verified, with the code of the diagnostic they become.

A plain `xdsl.utils.exceptions.VerifyException` is MSC0200; these carry a more telling code, and advice.
"""

from __future__ import annotations

from typing import ClassVar

from xdsl.ir import Operation
from xdsl.utils.exceptions import ParseError, VerifyException
from xdsl.utils.lexer import Span


class CodedVerifyException(VerifyException):
    """A broken rule with a code of its own; `help` is shown below the message.

    `operation` is the one that breaks it, where that is within the one that was verified.
    """

    code: ClassVar[str] = "MSC0200"

    def __init__(self, message: str, *, help: str | None = None, operation: Operation | None = None) -> None:
        super().__init__(message)
        self.help = help
        self.operation = operation


class ShapeConflict(CodedVerifyException):
    """Shapes of operands, properties or results do not fit together; the message gives the shapes on both sides."""

    code = "MSC0201"


class DtypeConflict(CodedVerifyException):
    """An element type that the operation does not take, or two that should be equal and are not."""

    code = "MSC0202"


class InvalidAttribute(CodedVerifyException):
    """A property with a value outside its range."""

    code = "MSC0203"


class InvalidStructure(CodedVerifyException):
    """Blocks, regions, terminators or symbols that do not form a program."""

    code = "MSC0205"


def code_of(error: VerifyException) -> str:
    """The diagnostic code of any verification failure."""
    return error.code if isinstance(error, CodedVerifyException) else CodedVerifyException.code


def place_of(error: VerifyException, verified: Operation) -> Operation:
    """The operation that a verification failure is about."""
    return (error.operation if isinstance(error, CodedVerifyException) else None) or verified


def help_of(error: VerifyException) -> str | None:
    """The advice that comes with a verification failure, if any."""
    return error.help if isinstance(error, CodedVerifyException) else None


class CodedParseError(ParseError):
    """A syntax error with a code of its own, at `span`; the parser of an operation raises it where it knows more."""

    def __init__(self, span: Span, message: str, code: str = "MSC0100", help: str | None = None) -> None:
        super().__init__(span, message)
        self.code = code
        self.help = help
