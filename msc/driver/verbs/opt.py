"""`msc opt`: run passes over a module; the tool that lit tests use."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import NoReturn

import click

from msc.driver.passes.registry import all_passes
from msc.driver.verbs.cell_options import with_cells
from msc.driver.verbs.completion import files, marches, one_of, passes, several_of, targets
from msc.driver.verbs.verb import Verb, say


class _Opt(Verb):
    """A verb that also takes the options of mlir-opt and xdsl-opt, and each pass as an option of its own, `--cse`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Raises UsageError."""
        return super().parse_args(ctx, translated(args))


@click.command(name="opt", cls=_Opt)
@click.argument("file", default="-", shell_complete=files)
@click.option(
    "-p",
    "--passes",
    "pipeline",
    default="",
    metavar="PIPELINE",
    help="e.g. 'pass-a,pass-b{option=1}'.",
    shell_complete=several_of(passes),
)
@click.option("-o", "--output", metavar="FILE", help="Write there instead of to the standard output.")
@click.option("--force", is_flag=True, help="Let FILE be the input, or one that msc did not write.")
@click.option("--generic", is_flag=True, help="Print the generic form, which upstream MLIR reads.")
@click.option("--debuginfo", is_flag=True, help="Print the location of each operation.")
@click.option("--print-ir-after", multiple=True, metavar="PASS|all|changed", help="Print the module to stderr then.")
@click.option("--timing", is_flag=True, help="Print what each pass took to stderr.")
@click.option("--verify-each/--no-verify-each", default=True, help="Verify after reading and after every pass.")
@click.option("--split-input-file", is_flag=True, help="Modules are separated by lines '// -----'.")
@click.option("--verify-diagnostics", is_flag=True, help="Print errors among the results and exit 0, for tests.")
@click.option("--target", metavar="NAME", help="The back end that the module is for.", shell_complete=one_of(targets))
@click.option("--march", metavar="MACHINE", help="The machine that it is for.", shell_complete=one_of(marches))
@click.option("--threads", type=click.IntRange(0, 1024), metavar="N", help="How many threads share a kernel.")
@click.option("--show-passes", is_flag=True, help="List the passes with their options.")
@click.option("--show-dialects", is_flag=True, help="List the dialects.")
@with_cells
def command(
    file: str,
    pipeline: str,
    output: str | None,
    force: bool,
    generic: bool,
    debuginfo: bool,
    print_ir_after: tuple[str, ...],
    timing: bool,
    verify_each: bool,
    split_input_file: bool,
    verify_diagnostics: bool,
    target: str | None,
    march: str | None,
    threads: int | None,
    show_passes: bool,
    show_dialects: bool,
) -> None:
    """Run PIPELINE over the module in FILE ('-' is the standard input) and print the result.

    Example: msc opt lenet5.mir -p 'expand-composites,canonicalize' --print-ir-after changed
    """
    if show_passes or show_dialects:
        say(_listing(show_passes))
        return
    from pathlib import Path

    from msc.driver.passes.opt import OptOptions, print_result, run_opt
    from msc.support.files import file_to_write
    from msc.support.outputs import OutputGuard

    options = OptOptions(
        pipeline,
        generic,
        debuginfo,
        verify_each,
        frozenset(print_ir_after),
        split_input_file,
        verify_diagnostics,
        timing,
        target,
        march,
        threads,
    )
    guard = OutputGuard((Path(file),), force)
    if output is not None and output != "-":
        guard.check_inputs(file_to_write(output))
    print_result(run_opt(file, options), output, guard)


def _listing(passes: bool) -> str:
    from msc.backends.passes import DIALECTS
    from msc.driver.passes.registry import all_passes

    return "\n".join(map(_pass_line, sorted(all_passes())) if passes else sorted(DIALECTS))


def _pass_line(name: str) -> str:
    from msc.driver.passes.pipeline import pass_summary

    return pass_summary(name)


def main() -> NoReturn:
    """The program `msc-opt`: the same as `msc opt`."""
    from msc.driver.front import run_program

    run_program(command, "msc-opt")


if __name__ == "__main__":
    main()


# The command line of mlir-opt and xdsl-opt in the words of `msc opt`: what people type who know those.
_SAME = {
    "--pass-pipeline": "--passes",
    "--mlir-print-ir-after": "--print-ir-after",
    "--mlir-print-ir-after-all": "--print-ir-after=all",
    "--print-ir-after-all": "--print-ir-after=all",
    "--mlir-print-ir-after-change": "--print-ir-after=changed",
    "--mlir-timing": "--timing",
    "--mlir-print-op-generic": "--generic",
    "--print-op-generic": "--generic",
    "--mlir-print-debuginfo": "--debuginfo",
    "--print-debuginfo": "--debuginfo",
}
_ANCHORED = re.compile(r"(?:builtin\.)?(?:module|any)\((.*)\)", re.DOTALL)


def translated(args: Sequence[str]) -> list[str]:
    """The arguments with the options of `msc opt`; options that are passes become one pipeline, in their order."""
    single = [_spelt(argument) for argument in args]
    passes = all_passes() if any(argument.startswith("--") for argument in single) else ()
    own = list(_pipeline(single, passes))
    rest = [argument for argument in single if _pass_of(argument, passes) is None]
    return [*rest, "--passes", ",".join(own)] if own else rest


def _pipeline(args: Sequence[str], passes: Collection[str]) -> Iterator[str]:
    for argument in args:
        name = _pass_of(argument, passes)
        if name is not None:
            options = argument.partition("=")[2].strip("'\"{}")
            yield f"{name}{{{options}}}" if options else name


def _pass_of(argument: str, passes: Collection[str]) -> str | None:
    name = argument.partition("=")[0].removeprefix("--")
    return name if argument.startswith("--") and name in passes else None


def _spelt(argument: str) -> str:
    """An option of mlir-opt as ours; `builtin.module(...)` around a pipeline says what msc runs passes on anyway."""
    name, equals, value = argument.partition("=")
    ours = _SAME.get(name)
    if ours is None:
        return argument
    anchored = _ANCHORED.fullmatch(value.strip())
    return f"{ours}{equals}{value if anchored is None else anchored[1]}"
