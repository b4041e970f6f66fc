"""Options that every verb on a MODEL takes; they reach the verb as one `CompileOptions`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import TypeVar

import click

from msc.backends.backend import Backend
from msc.backends.registry import DEFAULT, find_backend
from msc.driver.options import CompileOptions, Dim, parse_size
from msc.driver.verbs.cell_options import with_cells
from msc.driver.verbs.completion import (
    files,
    folders,
    marches,
    one_of,
    several_of,
    stages,
    switches,
    targets,
    words_or_files,
)
from msc.support.diagnostics import Diagnostic, MscError

R = TypeVar("R")

_OPTIONS = (
    click.option(
        "--target",
        default=DEFAULT,
        show_default=True,
        metavar="NAME",
        help="The back end to compile for.",
        shell_complete=one_of(targets),
    ),
    click.option(
        "--march",
        metavar="MACHINE",
        help="e.g. native, x86-64-v3, or FILE.toml [default: as the stage file says; native].",
        shell_complete=words_or_files(marches),
    ),
    click.option(
        "--threads",
        type=int,
        metavar="N",
        help="Threads of a call; 0: one a processor [default: as the stage file says; 1].",
    ),
    click.option(
        "--dim",
        "dims",
        multiple=True,
        metavar="NAME=SIZE",
        help="Size of a dimension the model leaves open; 1..64 leaves it to each call.",
    ),
    click.option(
        "--input-value",
        "input_values",
        multiple=True,
        metavar="NAME=1,2",
        help="Fix an input of a model file, e.g. axes=0,1.",
    ),
    click.option("--max-memory", default="4G", show_default=True, metavar="SIZE", help="Refuse models that need more."),
    click.option(
        "--weights", metavar="FOLDER", help="Where the weights lie, if not beside the model.", shell_complete=folders
    ),
    click.option(
        "--tuned", metavar="FILE", help="Use the schedules that msc tune wrote to FILE.", shell_complete=files
    ),
    click.option(
        "--without",
        metavar="NAME,...",
        help="Turn optimisations off: passes, and parts of passes such as fusion (docs/cli.md).",
        shell_complete=several_of(switches),
    ),
    click.option("--no-winograd", is_flag=True, help="Compute every convolution as it is defined."),
    click.option("--flush-subnormals", is_flag=True, help="Take zeros for subnormal numbers."),
    click.option("--check-indices", is_flag=True, help="Have a call look first at inputs that are indices."),
    click.option(
        "--precision", default="f32", metavar="TYPE", help="Of products' operands: f32, bf16 or f16; sums: f32."
    ),
    click.option("--mesh", default="", metavar="NAME=N,...", help="Make one rank's program of many, e.g. dp=2,tp=2."),
    click.option(
        "--from",
        "start",
        metavar="STAGE",
        help="The stage of MODEL, if its extension does not tell.",
        shell_complete=one_of(stages),
    ),
)


def with_compile_options(function: Callable[..., R]) -> Callable[..., R]:
    """Add the options to a command; it gets them as the keyword `options`."""

    @wraps(function)
    def collected(
        *args: object,
        target: str,
        march: str | None,
        threads: int | None,
        dims: tuple[str, ...],
        input_values: tuple[str, ...],
        max_memory: str,
        weights: str | None,
        tuned: str | None,
        without: str | None,
        no_winograd: bool,
        flush_subnormals: bool,
        check_indices: bool,
        precision: str,
        mesh: str,
        start: str | None,
        **rest: object,
    ) -> R:
        folder = Path(weights) if weights is not None else None
        named = tuple(without.split(",")) if without else ()
        _check_given(rest, start, named, find_backend(target))
        options = CompileOptions(
            target,
            march,
            threads,
            parse_dims(dims),
            parse_size(max_memory),
            folder,
            start,
            input_values=parse_input_values(input_values),
            tuned=Path(tuned) if tuned is not None else None,
            flush_subnormals=flush_subnormals,
            check_indices=check_indices,
            precision=precision,
            mesh=mesh,
            without=(*named, *(("winograd",) if no_winograd else ())),
        )
        return function(*args, options=options, **rest)

    command = with_cells(collected)
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def given_options(context: click.Context) -> list[str]:
    """The options that stand on the command line, by their long names."""
    source = click.core.ParameterSource.COMMANDLINE
    given = [p for p in context.command.params if p.name and context.get_parameter_source(p.name) is source]
    return [p.opts[-1] for p in given if isinstance(p, click.Option)]


_MODEL_ARGUMENTS = ("model", "file", "subject")


def _check_given(arguments: Mapping[str, object], start: str | None, without: Sequence[str], backend: Backend) -> None:
    """Raises MSC0014 for options that do nothing for the model."""
    from msc.driver.verbs.applicable_options import check_applicable, stage_at_start
    from msc.formats.registry import format_of

    context = click.get_current_context()
    model = next((str(arguments[name]) for name in _MODEL_ARGUMENTS if arguments.get(name) is not None), None)
    if model is None:
        return
    found = format_of(model)
    of_weights = found is not None and found.holds == "weights"
    compiled = (of_weights or model.endswith(".so")) and context.info_name in ("run", "bench", "inspect")
    stage = None if compiled else stage_at_start(model, start, backend)
    if compiled or stage is not None:
        check_applicable(given_options(context), model, stage, without, backend)


def parse_input_values(texts: Sequence[str]) -> dict[str, str]:
    """Values by input from `NAME=1,2`. Raises MSC0008."""
    values = dict[str, str]()
    for text in texts:
        name, equals, value = text.rpartition("=")
        if not equals or not name:
            raise MscError(Diagnostic("MSC0008", f"--input-value {text}: write NAME=1,2, as in --input-value axes=0,1"))
        _once("--input-value", name, values)
        values[name] = value
    return values


_SIZE_DIGITS = 12


def parse_dims(texts: Sequence[str]) -> dict[str, Dim]:
    """Sizes by name from `NAME=SIZE` and `NAME=LEAST..LARGEST`. Raises MSC0008."""
    sizes = dict[str, Dim]()
    for text in texts:
        name, equals, size = text.rpartition("=")
        low, dots, high = size.partition("..")
        if not equals or not name or not _is_size(low) or (dots and not _is_size(high)):
            message = f"--dim {text}: write NAME=SIZE, as in --dim batch=8, or a range, as in --dim batch=1..64"
            if equals and name and any(len(end) > _SIZE_DIGITS and end.isdigit() for end in (low, high)):
                message = f"--dim {text}: a size has at most {_SIZE_DIGITS} digits"
            raise MscError(Diagnostic("MSC0008", message))
        _once("--dim", name, sizes)
        sizes[name] = (int(low), int(high)) if dots else int(low)
    return sizes


def _once(option: str, name: str, known: Mapping[str, object]) -> None:
    if name in known:
        raise MscError(Diagnostic("MSC0008", f"{option} gives '{name}' twice", help="leave one of them out"))


def _is_size(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _SIZE_DIGITS
