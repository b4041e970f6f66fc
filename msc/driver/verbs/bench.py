"""`msc bench`: how long a model takes."""

from __future__ import annotations

import json

import click

from msc.driver.options import CompileOptions
from msc.driver.verbs.completion import files
from msc.driver.verbs.model_options import with_compile_options
from msc.driver.verbs.verb import COUNT, NUMBER, Verb


@click.command(name="bench", cls=Verb)
@click.argument("model", shell_complete=files)
@click.option("--input", "inputs", multiple=True, metavar="NAME=VALUE", help="@x.npy, or a literal like 2xf32=1,2.")
@click.option(
    "--random", "seed", type=COUNT, default=0, show_default=True, metavar="SEED", help="For all other inputs."
)
@click.option("--seconds", type=NUMBER, default=1.0, show_default=True, help="How long to measure.")
@click.option(
    "--warm-up", type=COUNT, default=10, show_default=True, metavar="N", help="Calls before that, which do not count."
)
@click.option("--kernels", is_flag=True, help="Time every kernel as well, in a build with clocks between them.")
@click.option("--json", "as_json", is_flag=True, help="Print seconds as JSON.")
@click.option("--no-cache", is_flag=True, help="Compile even if there is an earlier result.")
@with_compile_options
def command(
    model: str,
    inputs: tuple[str, ...],
    seed: int,
    seconds: float,
    warm_up: int,
    kernels: bool,
    as_json: bool,
    no_cache: bool,
    options: CompileOptions,
) -> None:
    """Call MODEL again and again on one input; show median, percentiles and, if asked for, each kernel's share.

    Example: msc bench lenet5.mir --threads 2 --kernels
    """
    from msc.driver.models.model_inputs import read_values
    from msc.driver.reports.benchmark import Workload, benchmark, measurement_text

    workload = Workload(read_values(inputs), seed, warm_up, seconds)
    measured = benchmark(model, options, workload, by_kernel=kernels, use_cache=not no_cache)
    click.echo(json.dumps(measured.to_json()) if as_json else measurement_text(measured))
