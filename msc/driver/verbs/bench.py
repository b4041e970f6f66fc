"""`msc bench`: how long a model takes."""

from __future__ import annotations

import json
from contextlib import ExitStack

import click

from msc.driver.options import CompileOptions
from msc.driver.verbs.completion import files
from msc.driver.verbs.model_options import with_compile_options
from msc.driver.verbs.verb import COUNT, NUMBER, Verb, say


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
@click.option(
    "--sort",
    type=click.Choice(["call", "time", "name", "flops", "peak"]),
    default="call",
    help="Order of the kernels: slowest first, by name, by GFLOP/s, or farthest from the machine's limits.",
)
@click.option("--trace", metavar="FILE.json", help="Write calls with their kernels there, for Perfetto.")
@click.option("--peaks", is_flag=True, help="Measure anew what the machine can do at best.")
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
    sort: str,
    trace: str | None,
    peaks: bool,
    as_json: bool,
    no_cache: bool,
    options: CompileOptions,
) -> None:
    """Call MODEL again and again on one input; show median, percentiles and, if asked for, each kernel's share.

    Example: msc bench lenet5.mir --threads 2 --kernels
    """
    from msc.driver.models.model_inputs import read_values
    from msc.driver.reports.benchmark import Workload, benchmark, measurement_text
    from msc.driver.reports.run_trace import is_trace, trace_text
    from msc.support.files import file_to_write
    from msc.support.outputs import OutputSet

    workload = Workload(read_values(inputs), seed, warm_up, seconds)
    by_kernel = kernels or trace is not None or peaks or sort != "call"
    with OutputSet() as files, ExitStack() as opened:
        # The file is opened first: whether it can be written is told before the time is spent.
        file = None if trace is None else opened.enter_context(files.open(file_to_write(trace), is_trace))
        measured = benchmark(model, options, workload, by_kernel=by_kernel, use_cache=not no_cache, peaks_again=peaks)
        if file is not None:
            file.write(trace_text(measured, model, options.team).encode("utf-8"))
    say(json.dumps(measured.to_json()) if as_json else measurement_text(measured, sort))
    if trace is not None:
        say(f"wrote {trace}: open it in https://ui.perfetto.dev", err=True)
