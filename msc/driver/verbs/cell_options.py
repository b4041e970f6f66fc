"""MODEL as `module.py:Net`: the options of every verb for it, and the model file that the verb then works on."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click

from msc.driver.verbs.completion import files
from msc.formats.registry import format_of, ir_format
from msc.support.diagnostics import Diagnostic, MscError
from msc.support.temporary import temporary_folder

R = TypeVar("R")

CELL_OPTIONS = ("--init", "--input")
"""Options that verbs have for Cells alone; those that run a model take values by --input, too."""
_TYPE = re.compile(r"(?:\d+x)*[a-z]+\d+")
_ARGUMENTS = ("model", "file", "subject")

_INPUT = click.option(
    "--input",
    "cell_inputs",
    multiple=True,
    metavar="NAME=TYPE",
    help="Type of an argument of a Cell, as in x=1x1x32x32xf32.",
)
_INIT = click.option(
    "--init", metavar="FILE", help="Weights of a Cell, a file, in place of its own.", shell_complete=files
)


def with_cells(function: Callable[..., R]) -> Callable[..., R]:
    """Let a command take `module.py:Net`: it gets a model file instead, and of `--input` what has values."""
    takes_inputs = "inputs" in inspect.signature(function).parameters

    @wraps(function)
    def resolved(*args: object, init: str | None, cell_inputs: tuple[str, ...] = (), **rest: Any) -> R:
        place = next((name for name in _ARGUMENTS if name in rest), None)
        model: object = rest[place] if place is not None else None
        if place is None or not isinstance(model, str) or not _is_program(model):
            _refuse_cell_options(init is not None, bool(cell_inputs))
            return function(*args, **rest)
        given: Sequence[str] = rest["inputs"] if takes_inputs else cell_inputs
        if takes_inputs:
            rest["inputs"] = tuple(text for text in given if not _TYPE.fullmatch(text.partition("=")[2]))
        with temporary_folder("cell") as folder:
            rest[place] = _captured(model, given, init, folder)
            return function(*args, **rest)

    command = _INIT(resolved)
    return command if takes_inputs else _INPUT(command)


def _refuse_cell_options(init: bool, inputs: bool) -> None:
    """Raises MSC0014 for options that only a Cell has, given with another model."""
    idle = [option for option, given in zip(CELL_OPTIONS, (init, inputs), strict=True) if given]
    if idle:
        advice = "leave it out; a Cell is named as in net.py:Net"
        raise MscError(*(Diagnostic("MSC0014", f"{o} has no effect here: it is for Cells", help=advice) for o in idle))


def _is_program(model: str) -> bool:
    found = format_of(model)
    return found is not None and found.holds == "program"


def _captured(model: str, given: Sequence[str], init: str | None, folder: Path) -> str:
    """The file of msc's own text that a program makes: it is run once, whatever the verb does."""
    from msc.formats.format import Reading
    from msc.formats.own_files import save
    from msc.support.escaping import file_name

    found = format_of(model)
    assert found is not None
    how = Reading(types=dict(map(_typed, given)), init=Path(init) if init is not None else None)
    imported = found.read(model, how)
    name = imported.module.sym_name
    path = folder / f"{file_name('model' if name is None else name.data)}{ir_format().extensions[0]}"
    save(imported, path)
    return str(path)


def _typed(text: str) -> tuple[str, str]:
    """The name and the type of `NAME=TYPE`, `NAME=TYPE=VALUES` and `NAME=@file.npy`."""
    name, _, rest = text.partition("=")
    if not rest.startswith("@"):
        return name, rest.partition("=")[0]
    import numpy as np

    from msc.dialects.arrays import dtype_text
    from msc.driver.models.model_inputs import read_values

    array = read_values([text])[name]
    assert isinstance(array, np.ndarray)
    return name, "x".join([*map(str, array.shape), dtype_text(array.dtype)])
