"""`msc inspect`: what a file holds."""

from __future__ import annotations

import json
from pathlib import Path

import click

from msc.driver.options import CompileOptions
from msc.driver.verbs.completion import files
from msc.driver.verbs.model_options import with_compile_options
from msc.driver.verbs.verb import Verb, say


@click.command(name="inspect", cls=Verb)
@click.argument("file", shell_complete=files)
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
@click.option("--memory", is_flag=True, help="Print which tensors of the workspace are live at each kernel.")
@click.option("--memory-picture", metavar="FILE.svg", help="Draw that.")
@with_compile_options
def command(file: str, as_json: bool, memory: bool, memory_picture: str | None, options: CompileOptions) -> None:
    """Show inputs, outputs, operations, parameters, work and memory of FILE: a model, a .so or a .safetensors.

    Example: msc inspect lenet5.mir
    """
    from msc.driver.reports.inspection import inspect_file, report_text

    report = inspect_file(file, options)
    say(json.dumps(report.to_json()) if as_json else report_text(report))
    if memory or memory_picture is not None:
        from msc.driver.reports.memory_use import memory_picture_text, memory_text, write_picture

        if memory and not as_json:
            say(memory_text(report.memory))
        if memory_picture is not None:
            write_picture(Path(memory_picture), memory_picture_text(report.memory))
