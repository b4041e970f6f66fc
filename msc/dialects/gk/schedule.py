"""The schedule of a kernel as an attribute: a string for each line of the tree, which MLIR can read and people edit.

#gk.schedule<[
"axis i 8: S0.0",
"for i vector",
"  run S0"
]>
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.lexer import Span

from msc.ir.errors import CodedParseError
from msc.poly.schedule_tree.nodes import ScheduleError, Tree
from msc.poly.schedule_tree.text import from_lines, to_lines
from msc.poly.schedule_tree.verify import check_structure

_ADVICE = "docs/schedules.md has the grammar; without the attribute msc chooses a schedule"


@irdl_attr_definition
class ScheduleAttr(Data[Tree]):
    """A schedule tree (`msc.poly.schedule_tree`); `verify-schedules` proves that it is legal for its kernel."""

    name = "gk.schedule"

    @property
    def lines(self) -> list[str]:
        """The text of the tree."""
        return to_lines(self.data)

    @classmethod
    def of_lines(cls, lines: Sequence[str]) -> ScheduleAttr:
        """The schedule that a text says. Raises ScheduleError."""
        return cls(from_lines(lines))

    def verify(self) -> None:
        try:
            check_structure(self.data)
        except ScheduleError as problem:
            raise VerifyException(f"gk.schedule: {problem}") from problem

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Tree:
        with parser.in_angle_brackets():
            start = parser.pos
            lines = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: _placed_line(parser))
            try:
                tree = from_lines([text for text, _ in lines])
                check_structure(tree)
            except ScheduleError as problem:
                span = lines[problem.line - 1][1] if problem.line else Span(start, parser.pos, parser.lexer.input)
                raise CodedParseError(span, f"gk.schedule: {problem}", "MSC0408", _ADVICE) from problem
            return tree

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string("[")
            with printer.indented():
                for k, line in enumerate(self.lines):
                    printer.print_string(",\n" if k else "\n")
                    printer.print_string_literal(line)
            printer.print_string("\n]" if self.data.axes or self.data.body.nodes else "]")


def _placed_line(parser: AttrParser) -> tuple[str, Span]:
    """The next line, and the place of its text in the file: an error marks it."""
    start = parser.pos + 1
    text = parser.parse_str_literal()
    return text, Span(start, start + len(text), parser.lexer.input)
