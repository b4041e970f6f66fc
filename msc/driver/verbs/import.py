"""`msc import`: a model of another format as msc's own text, with its weights beside it."""

from __future__ import annotations

from pathlib import Path

import click

from msc.driver.verbs.completion import files
from msc.driver.verbs.verb import Verb, say


@click.command(name="import", cls=Verb)
@click.argument("model", metavar="MODEL", shell_complete=files)
@click.option("-o", "--output", metavar="FILE.mir", help="Write there; default: the model's name with .mir.")
@click.option("--force", is_flag=True, help="Let it replace files that msc did not write.")
@click.option("--dim", "dims", multiple=True, metavar="NAME=SIZE", help="Size of a dimension the model leaves open.")
@click.option("--input-value", "values", multiple=True, metavar="NAME=1,2", help="Fix an input, e.g. axes=0,1.")
def command(model: str, output: str | None, force: bool, dims: tuple[str, ...], values: tuple[str, ...]) -> None:
    """Import a model of another format, as ONNX: write FILE.mir and, for its weights, FILE.safetensors.

    Example: msc import resnet.onnx -o resnet.mir --dim batch=8
    """
    from msc.driver.options import CompileOptions
    from msc.driver.verbs.model_options import parse_dims, parse_input_values
    from msc.formats.own_files import save
    from msc.formats.registry import format_of, imported_extensions
    from msc.ir.verification import verify_module
    from msc.support.diagnostics import Diagnostic, MscError
    from msc.support.files import file_to_write, near_file
    from msc.support.other_frameworks import file_advice
    from msc.support.outputs import OutputGuard, written_files

    found = format_of(model)
    if found is None or found.holds != "graph":
        is_own = found is not None and found.holds == "ir"
        message = f"'{model}' is of no format that msc imports; it imports {', '.join(imported_extensions())}"
        advice = "it is a model of msc already: msc compile takes it" if is_own else None
        foreign = file_advice(model)
        raise MscError(
            Diagnostic("MSC0006", message, help=advice or (foreign[1] if foreign else near_file(Path(model))))
        )
    options = CompileOptions(dims=parse_dims(dims), input_values=parse_input_values(values))
    imported = found.read(model, options.reading())
    verify_module(imported.module)
    out = file_to_write(output) if output is not None else Path(model).with_suffix(".mir")
    files = (Path(model), *(Path(model).parent / name for name in imported.files))
    with written_files() as written:
        save(imported, out, OutputGuard(files, force))
    say(f"wrote {', '.join(map(str, written))}", err=True)
