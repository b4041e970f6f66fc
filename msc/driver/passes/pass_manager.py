"""Runs passes over a module: verifies after each, names the pass that broke something, shows what was asked for."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import DiagnosticException

from msc.driver.passes.registry import makers
from msc.driver.passes.reproducer import Reproducing
from msc.ir.contracts import Holding
from msc.ir.locations import SourceText
from msc.ir.verification import module_diagnostics
from msc.support.diagnostics import DecidedByCall, Diagnostic, MscError
from msc.support.progress import step

AfterPass = Callable[[str, ModuleOp, float], None]
"""Called after each pass with its name, the module and the seconds it took, before the module is verified."""


@dataclass(frozen=True)
class PassManager:
    """What holds for every pass of a run; `sources` maps file names to texts, for the lines in diagnostics.

    Without `change`, the passes only check the module.
    """

    context: Context
    sources: Mapping[str, str]
    verify_each: bool = True
    after_pass: AfterPass | None = None
    change: bool = True

    def run(self, module: ModuleOp, passes: Sequence[ModulePass], earlier: Reproducing | None = None) -> Reproducing:
        """Apply the passes in order, each where its contract allows it.

        The result is for a further run on the module, which nothing else changes in between: there it is `earlier`.

        Raises what they raise, MSC0414 where one lacks what it requires, MSC0404 when one fails, MSC0901 when one
        breaks the IR or its own contract.

        What means a bug in msc, MSC0900 or MSC0901, names a file that repeats it.
        """
        reproducing = Reproducing(self.context, module, passes, change=self.change, earlier=earlier)
        holding = Holding(makers)
        for item in passes:
            start = time.perf_counter()
            step(item.name)
            self._require(holding, item, module)
            with reproducing:
                self._apply(item, module)
            holding.ran(item)
            if self.after_pass is not None:
                self.after_pass(item.name, module, time.perf_counter() - start)
            if self.verify_each:
                with reproducing:
                    self._verify(item, module, holding)
            reproducing.done += 1
        return reproducing

    def _apply(self, item: ModulePass, module: ModuleOp) -> None:
        try:
            item.apply(self.context, module)
        except MscError as error:
            found = with_source_lines(error.diagnostics, self.sources)
            decided = isinstance(error, DecidedByCall)
            raise (DecidedByCall(found[0], error.inputs) if decided else MscError(*found)) from error
        except DiagnosticException as error:
            message = f"pass '{item.name}' failed: {error}"
            raise MscError(Diagnostic("MSC0404", message)) from error

    def _require(self, holding: Holding, item: ModulePass, module: ModuleOp) -> None:
        try:
            holding.require(item, module)
        except MscError as error:
            raise MscError(*with_source_lines(error.diagnostics, self.sources)) from error

    def _verify(self, item: ModulePass, module: ModuleOp, holding: Holding) -> None:
        broken = (*module_diagnostics(module, self.sources), *holding.broken_by(item, module))
        if broken:
            message = f"pass '{item.name}' left a program that is not valid"
            help_line = f"--print-ir-after {item.name} shows the program it left"
            raise MscError(Diagnostic("MSC0901", message, help=help_line), *broken)


def with_source_lines(diagnostics: Sequence[Diagnostic], sources: Mapping[str, str]) -> tuple[Diagnostic, ...]:
    """The diagnostics with the source line where they have a location and the text is at hand."""
    texts = {name: SourceText(text, name) for name, text in sources.items()}
    return tuple(_with_source_line(diagnostic, texts) for diagnostic in diagnostics)


def _with_source_line(diagnostic: Diagnostic, texts: Mapping[str, SourceText]) -> Diagnostic:
    location = diagnostic.place
    if location is None or diagnostic.source_line is not None or location.file not in texts:
        return diagnostic
    return replace(diagnostic, source_line=texts[location.file].lines.line(location.line))
