"""`msc inspect`: what a file holds."""

from __future__ import annotations

import json

import click

from msc.driver.options import CompileOptions
from msc.driver.verbs.completion import files
from msc.driver.verbs.model_options import with_compile_options
from msc.driver.verbs.verb import Verb, say


@click.command(name="inspect", cls=Verb)
@click.argument("file", shell_complete=files)
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
@with_compile_options
def command(file: str, as_json: bool, options: CompileOptions) -> None:
    """Show inputs, outputs, operations, parameters, work and memory of FILE: a model, a .so or a .safetensors.

    Example: msc inspect lenet5.mir
    """
    from msc.driver.reports.inspection import inspect_file, report_text

    report = inspect_file(file, options)
    say(json.dumps(report.to_json()) if as_json else report_text(report))
