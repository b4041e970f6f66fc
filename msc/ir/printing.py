"""`SourcePrinter`: modules with locations that can be read back."""

from __future__ import annotations

from xdsl.ir import Operation
from xdsl.printer import Printer


class SourcePrinter(Printer):
    """xDSL's printer, with one location an operation, at its end.

    xDSL puts one behind an operation's type, too: in front of the regions of a custom form as `scf.while` has, where
    no parser looks for it.
    """

    def print_operation_type(self, op: Operation) -> None:
        has_custom_form = not self.print_generic_format and type(op).print is not Operation.print
        shown, self.print_debuginfo = self.print_debuginfo, self.print_debuginfo and not has_custom_form
        super().print_operation_type(op)
        self.print_debuginfo = shown
