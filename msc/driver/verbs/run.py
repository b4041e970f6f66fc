"""`msc run`: a model on given or random inputs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from msc.driver.options import CompileOptions
from msc.driver.verbs.completion import files
from msc.driver.verbs.model_options import with_compile_options
from msc.driver.verbs.verb import COUNT, NUMBER, Verb, say

if TYPE_CHECKING:
    from msc.runtime.artifact import CompiledModel


@click.command(name="run", cls=Verb)
@click.argument("model", shell_complete=files)
@click.option("--input", "inputs", multiple=True, metavar="NAME=VALUE", help="@x.npy, or a literal like 2xf32=1,2.")
@click.option("--random", "seed", type=COUNT, metavar="SEED", help="Make up the inputs that are not given.")
@click.option("--output-dir", metavar="FOLDER", help="Write each output there as NAME.npy.")
@click.option("--force", is_flag=True, help="Let outputs replace files that msc did not write.")
@click.option("--expect", multiple=True, metavar="NAME=VALUE", help="Compare an output; exit 1 if it differs.")
@click.option("--atol", type=NUMBER, default=1e-5, show_default=True, help="Absolute tolerance of --expect.")
@click.option("--rtol", type=NUMBER, default=1e-4, show_default=True, help="Relative tolerance of --expect.")
@click.option("--json", "as_json", is_flag=True, help="Print the outputs as JSON.")
@click.option("--no-cache", is_flag=True, help="Compile even if there is an earlier result.")
@with_compile_options
def command(
    model: str,
    inputs: tuple[str, ...],
    seed: int | None,
    output_dir: str | None,
    force: bool,
    expect: tuple[str, ...],
    atol: float,
    rtol: float,
    as_json: bool,
    no_cache: bool,
    options: CompileOptions,
) -> None:
    """Compile MODEL if need be (a .so is taken as it is), run it once, print its outputs.

    Example: msc run lenet5.mir --input image=@digit.npy --expect logits=@logits.npy
    """
    import numpy as np

    from msc.driver.artifacts.libraries import Library, library_of
    from msc.driver.artifacts.model_on_call import made_for
    from msc.driver.models.model_inputs import choose_inputs, read_values, value_files
    from msc.driver.models.model_outputs import Tolerance, check_expected, describe, save_outputs, to_json
    from msc.runtime.stored_order import own_array
    from msc.support.outputs import OutputGuard

    given, expected = read_values(inputs), read_values(expect, "--expect")
    libraries = list[Library]()

    def load(chosen: CompileOptions) -> CompiledModel:
        libraries.append(library_of(model, chosen, use_cache=not no_cache))
        return libraries[-1].load()

    compiled, taken = made_for(options, given, load)
    arrays = choose_inputs(compiled.signature.inputs, taken, seed)
    pairs = zip(compiled.signature.inputs, arrays, strict=True)
    results = compiled.results(*(own_array(t, a) if t.order else np.array(a, order="C") for t, a in pairs))
    outputs = {t.name: array for t, array in zip(compiled.signature.results, results, strict=True)}
    say(to_json(outputs) if as_json else describe(outputs))
    if output_dir is not None:
        read = (*(path for library in libraries for path in library.inputs), *value_files(inputs), *value_files(expect))
        save_outputs(outputs, Path(output_dir), OutputGuard(read, force))
    check_expected(outputs, expected, Tolerance(atol, rtol))
    if expected:
        say(f"as expected: {', '.join(expected)}", err=True)
