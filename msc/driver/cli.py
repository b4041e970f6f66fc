"""The `msc` command: a click group whose verbs are imported when they are used."""

from __future__ import annotations

from importlib import import_module
from typing import NoReturn

import click

import msc

VERBS: dict[str, str] = {
    "compile": "Compile a model to C, an object, a shared library, a program or a bundle.",
    "run": "Run a model on given or random inputs.",
    "verify": "Check every stage of a compilation against the interpreter.",
    "bench": "Time a model, whole and kernel by kernel.",
    "tune": "Search for faster schedules by measurement.",
    "explain": "Explain the kernels of a model, or a diagnostic code.",
    "inspect": "Show what a model, an artifact or a file of weights holds.",
    "import": "Turn a model of another format into .mir text and its weights beside it.",
    "quantize": "Quantise a model to 8-bit integers by calibration data.",
    "opt": "Run passes over a module and print it.",
    "sim": "Simulate a kernel on the cores of an accelerator, or a list of cases.",
    "parallel": "Plan a model on many devices: layouts, memory and time before they are booked.",
    "port": "List what of a program for MindSpore msc lacks, and replace its imports.",
    "stages": "List the stages from model to artifact.",
    "cache": "Show the cache of compiled models, or empty it.",
    "doctor": "Check what msc needs on this machine, and say how to get it.",
}
"""Verb -> what `msc --help` says of it; the module msc.driver.verbs.<verb> holds it as `command`."""


class _LazyGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        loaded: object = import_module(f"msc.driver.verbs.{cmd_name.replace('-', '_')}").command
        assert isinstance(loaded, click.Command), cmd_name
        return loaded

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] == "help":
            args = [*args[1:2], "--help"]
            if args[0] == "--help":
                click.echo(ctx.get_help())
                ctx.exit()
        if args and args[0] not in VERBS and not args[0].startswith("-"):
            from msc.support.diagnostics import did_you_mean

            hint = did_you_mean(args[0], VERBS)
            ctx.fail(f"no such command '{args[0]}'{'' if hint is None else f'; {hint}'}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(VERBS.items()))


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(msc.__version__, message=f"msc %(version)s ({msc.DISTRIBUTION})")
@click.option("--debug", is_flag=True, help="Show the Python traceback of an error.")
def command(debug: bool) -> None:
    """A MindSpore-style multi-level compiler: models to readable C."""
    del debug  # taken from the arguments before click reads them, so that it may stand anywhere


def main() -> NoReturn:
    """The program `msc`."""
    from msc.driver.front import run_program

    run_program(command, "msc")
