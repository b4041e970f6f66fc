"""The pass driver behind `msc opt` and `msc-opt`: reads modules, runs a pipeline over them, prints them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from xdsl.dialects.builtin import ModuleOp

from msc.analysis.target import DEFAULT_BACKEND, DEFAULT_THREADS
from msc.backends.registry import find_backend
from msc.dialects.ms.interface_attributes import check_interface
from msc.dialects.ms.target import TargetAttr, set_target, target_attribute
from msc.driver.passes.ir_dump import IrDump, check_print_after
from msc.driver.passes.pass_manager import AfterPass, PassManager
from msc.driver.passes.pipeline import build_pipeline
from msc.driver.passes.registry import new_context
from msc.driver.passes.reproducer import recorded_pipeline
from msc.ir.locations import format_module
from msc.ir.reading import parse_module
from msc.ir.verification import verify_module
from msc.support.diagnostics import Diagnostic, MscError
from msc.support.files import file_to_write, read_source, source_name
from msc.support.marks import is_marked, marked
from msc.support.outputs import OutputGuard, OutputSet, print_text

SPLIT_MARKER = "// -----"
"""The line between two modules of one file under --split-input-file, as in MLIR."""


@dataclass(frozen=True)
class OptOptions:
    """The options of `msc opt`; `print_after` holds pass names, or `all`, or `changed`.

    `target`, `march` and `threads` change what the module says that it is compiled for.
    """

    pipeline: str = ""
    generic: bool = False
    debuginfo: bool = False
    verify_each: bool = True
    print_after: frozenset[str] = field(default_factory=frozenset[str])
    split_input_file: bool = False
    verify_diagnostics: bool = False
    timing: bool = False
    target: str | None = None
    march: str | None = None
    threads: int | None = None


def run_opt(file: str, options: OptOptions) -> str:
    """What `msc opt` prints for `file` (`-` is the standard input). Raises one MscError for all parts that fail."""
    check_print_after(options.print_after)
    build_pipeline(options.pipeline)
    text, name = _read(file)
    options = options if options.pipeline else replace(options, pipeline=recorded_pipeline(text))
    outputs: list[str] = []
    failures: list[Diagnostic] = []
    for part in _parts(text, options.split_input_file):
        try:
            outputs.append(_run_part(part, name, options))
        except MscError as error:
            failures += error.diagnostics
            outputs.append(f"{error}\n")
    if failures and not options.verify_diagnostics:
        raise MscError(*failures)
    return f"\n{SPLIT_MARKER}\n\n".join(outputs)


def _run_part(text: str, name: str, options: OptOptions) -> str:
    sources = {name: text}
    context = new_context(None if options.target is None else find_backend(options.target))
    module = parse_module(context, text, name)
    if options.verify_each:
        verify_module(module, sources)
        check_interface(module, sources)
    _set_target(module, options)
    after = _printing(options, module) if options.print_after or options.timing else None
    PassManager(context, sources, options.verify_each, after).run(module, build_pipeline(options.pipeline))
    return format_module(module, generic=options.generic, debuginfo=options.debuginfo)


def _set_target(module: ModuleOp, options: OptOptions) -> None:
    """What the options say of the target; the rest is as the module says, or as by default. Raises MSC0501, MSC0506."""
    if options.target is None and options.march is None and options.threads is None:
        return
    said = target_attribute(module)
    backend = find_backend(options.target or (DEFAULT_BACKEND if said is None else said.backend.data))
    same = said if said is not None and said.backend.data == backend.name else None
    machine = options.march or (backend.default_machine if same is None else same.machine.data)
    default = DEFAULT_THREADS if same is None else same.threads.data
    threads = default if options.threads is None else options.threads
    set_target(module, TargetAttr.of(backend.name, machine, threads, backend.describe(machine)))


def _printing(options: OptOptions, module: ModuleOp) -> AfterPass:
    dump = IrDump(options.print_after, module, generic=options.generic, debuginfo=options.debuginfo)

    def after(name: str, module: ModuleOp, seconds: float) -> None:
        if options.timing:
            print(f"{name:<32}{seconds * 1e3:>10.2f} ms", file=sys.stderr)
        dump(name, module)

    return after


def _read(file: str) -> tuple[str, str]:
    return read_source(Path(file)), source_name(file)


def _parts(text: str, split: bool) -> Iterator[str]:
    """The modules of a file; blank lines stand for what came before, so that line numbers are the file's."""
    if not split:
        yield text
        return
    lines_before = 0
    for part in f"\n{text}".split(f"\n{SPLIT_MARKER}"):
        rest_of_marker = part if lines_before == 0 else part.partition("\n")[2]
        body = rest_of_marker.removeprefix("\n") if lines_before == 0 else rest_of_marker
        yield "\n" * lines_before + body
        lines_before += body.count("\n") + 2


def print_result(text: str, output: str | None, guard: OutputGuard) -> None:
    """Write to the file `output`, or to the standard output. Raises MSC0004, MSC0010 and MSC0011."""
    if output is None or output == "-":
        print_text(text)
        return
    with OutputSet(guard) as files:
        files.write(file_to_write(output), marked(text), is_marked)
