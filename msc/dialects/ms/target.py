"""`ms.target`: what a module is compiled for, as an attribute of the module.

    builtin.module attributes {ms.target = #ms.target<"cpu", machine = "x86-64-v3", threads = 4>} {

`machine` is a name of `msc.targets`; `threads` share a kernel, 0 for one on each core. A machine whose name does not
say which one it is (`native`) is `described`.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntAttr, ModuleOp, NoneAttr, StringAttr
from xdsl.ir import Attribute, Operation, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

TARGET = "ms.target"
"""The attribute of a module."""

MOST_THREADS = 1024


@irdl_attr_definition
class TargetAttr(ParametrizedAttribute):
    """A back end, a machine of it, and how many threads share a kernel."""

    name = "ms.target"
    backend: StringAttr
    machine: StringAttr
    threads: IntAttr
    described: StringAttr | NoneAttr

    @classmethod
    def of(cls, backend: str, machine: str, threads: int, described: str | None = None) -> TargetAttr:
        """The attribute of plain values."""
        text = NoneAttr() if described is None else StringAttr(described)
        return cls(StringAttr(backend), StringAttr(machine), IntAttr(threads), text)

    def with_threads(self, threads: int) -> TargetAttr:
        """The same machine with so many threads."""
        return TargetAttr(self.backend, self.machine, IntAttr(threads), self.described)

    def verify(self) -> None:
        if not 0 <= self.threads.data <= MOST_THREADS:
            raise VerifyException(f"threads is {self.threads.data}; it is 0 (automatic) to {MOST_THREADS}")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        """Grammar: `<` STRING `,` `machine` `=` STRING `,` `threads` `=` INT (`,` `described` `=` STRING)? `>`."""
        with parser.in_angle_brackets():
            backend = parser.parse_str_literal()
            machine = _field(parser, "machine").parse_str_literal()
            threads = _field(parser, "threads").parse_integer(allow_boolean=False)
            described = NoneAttr()
            if parser.parse_optional_punctuation(",") is not None:
                parser.parse_keyword("described")
                parser.parse_punctuation("=")
                described = StringAttr(parser.parse_str_literal())
        return (StringAttr(backend), StringAttr(machine), IntAttr(threads), described)

    def print_parameters(self, printer: Printer) -> None:
        """The same, so that a person may write it."""
        with printer.in_angle_brackets():
            printer.print_string_literal(self.backend.data)
            printer.print_string(", machine = ")
            printer.print_string_literal(self.machine.data)
            printer.print_string(f", threads = {self.threads.data}")
            if isinstance(self.described, StringAttr):
                printer.print_string(", described = ")
                printer.print_string_literal(self.described.data)


def _field(parser: AttrParser, name: str) -> AttrParser:
    parser.parse_punctuation(",")
    parser.parse_keyword(name)
    parser.parse_punctuation("=")
    return parser


def target_attribute(op: Operation) -> TargetAttr | None:
    """What the module around an operation says that it is compiled for; None where it says nothing."""
    while (parent := op.parent_op()) is not None:
        op = parent
    found = op.attributes.get(TARGET)
    return found if isinstance(found, TargetAttr) else None


def set_target(module: ModuleOp, target: TargetAttr) -> None:
    """Say in a module what it is compiled for."""
    module.attributes[TARGET] = target
