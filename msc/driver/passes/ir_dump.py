"""Printing modules after passes."""

from __future__ import annotations

import sys

from xdsl.dialects.builtin import ModuleOp

from msc.driver.passes.registry import all_passes
from msc.ir.locations import format_module
from msc.support.diagnostics import Diagnostic, MscError, did_you_mean
from msc.support.escaping import printable


class IrDump:
    """Prints the module to standard error after the passes that were asked for: names, `all` or `changed`."""

    def __init__(
        self, wanted: frozenset[str], before: ModuleOp, *, generic: bool = False, debuginfo: bool = False
    ) -> None:
        """Raises MSC0401 for a name that is no pass."""
        check_print_after(wanted)
        self._wanted = wanted
        self._generic, self._debuginfo = generic, debuginfo
        self._before = self._format(before)

    def __call__(self, name: str, module: ModuleOp) -> None:
        """Print the module if it was asked for after pass `name`."""
        text = self._format(module)
        changed = text != self._before
        self._before = text
        if self._wanted & {"all", name} or ("changed" in self._wanted and changed):
            print(f"// -----// IR after {name} //----- //\n{printable(text)}", file=sys.stderr)

    def _format(self, module: ModuleOp) -> str:
        return format_module(module, generic=self._generic, debuginfo=self._debuginfo)


def check_print_after(names: frozenset[str]) -> None:
    """Raises MSC0401 for a name that is neither a pass nor `all` nor `changed`."""
    known = {*all_passes(), "all", "changed"}
    for name in sorted(names - known):
        message = f"--print-ir-after: there is no pass '{name}'"
        raise MscError(Diagnostic("MSC0401", message, help=did_you_mean(name, known)))
