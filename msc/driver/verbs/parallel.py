"""`msc parallel`: a plan for many devices, or predictions for a list of cases."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from msc.driver.verbs.cell_options import with_cells
from msc.driver.verbs.completion import files
from msc.driver.verbs.model_options import parse_dims
from msc.driver.verbs.verb import NUMBER, Verb, say
from msc.planner.cluster import MEASURED, cluster_named, cluster_text, is_measured
from msc.planner.layout_search import MODES, SearchMode
from msc.planner.model_plan import GraphWish
from msc.planner.stages import plan_model
from msc.planner.step import Schedule
from msc.support.diagnostics import Diagnostic, MscError
from msc.support.outputs import OutputGuard, OutputSet

_LEVELS = "What data-parallel ranks share: 1 the optimizer's state, 2 gradients, 3 weights."


@click.group(name="parallel")
def command() -> None:
    """Plan models on many devices, and measure the links between them.

    Example: msc parallel plan --cases runs.toml
    """


@command.command(name="plan", cls=Verb)
@click.argument("model", required=False, shell_complete=files)
@click.option("--cases", type=click.Path(dir_okay=False), help="Predict the cases of a TOML file instead.")
@click.option(
    "--devices", type=click.IntRange(1, 1 << 20), metavar="N", help="How many; all of the cluster unless given."
)
@click.option("--cluster", default="host-8", metavar="NAME", show_default=True, help="A ready cluster, or its file.")
@click.option(
    "--global-batch", type=click.IntRange(1), metavar="N", help="Samples of a step: micro-batches of the model's."
)
@click.option("--train", is_flag=True, help="Plan a training step, not a call.")
@click.option("--mixed", is_flag=True, help="Compute in f16, with f32 copies of the parameters.")
@click.option("--stages", type=click.IntRange(1), default=1, show_default=True, help="Stages of a pipeline.")
@click.option(
    "--schedule", type=click.Choice(["gpipe", "1f1b"]), default="1f1b", show_default=True, help="Of the pipeline."
)
@click.option(
    "--search", "mode", type=click.Choice(MODES), default=MODES[0], show_default=True, help="How layouts are found."
)
@click.option("--optimizer-level", type=click.IntRange(0, 3), default=0, show_default=True, help=_LEVELS)
@click.option(
    "--on-host", "host", multiple=True, metavar="PARAMETER", help="A parameter that stays in the host's memory."
)
@click.option("--computing", type=NUMBER, metavar="MS", help="Measured milliseconds of forward and backward pass.")
@click.option(
    "--dim", "dims", multiple=True, metavar="NAME=SIZE", help="Size of a dimension that the model leaves open."
)
@click.option("--strategy", "strategy", metavar="FILE", help="Write the strategies found as text.")
@click.option("--load-strategy", "loaded", metavar="FILE", help="Cut the operators as a file of strategies says.")
@click.option("--marks", metavar="FILE", help="Write the model with its layouts, for propagate-layouts, partition.")
@click.option("--trace", metavar="FILE", help="Write a trace for Perfetto with a lane for each rank.")
@click.option(
    "--json",
    "json_out",
    is_flag=False,
    flag_value="-",
    metavar="[FILE]",
    help="Write the figures as JSON to FILE, or print them.",
)
@click.option("--force", is_flag=True, help="Let results replace files that msc did not write.")
@with_cells
def plan(
    model: str | None,
    cases: str | None,
    devices: int | None,
    cluster: str,
    global_batch: int | None,
    train: bool,
    mixed: bool,
    stages: int,
    schedule: Schedule,
    mode: SearchMode,
    optimizer_level: int,
    host: tuple[str, ...],
    computing: float | None,
    dims: tuple[str, ...],
    strategy: str | None,
    loaded: str | None,
    marks: str | None,
    trace: str | None,
    json_out: str | None,
    force: bool,
) -> None:
    """Plan MODEL on the devices of a cluster: layouts, redistributions, time by cause, memory, and what lost.

    With --cases, training runs of GPT-like models are predicted, and what they leave out (mesh, micro-batch, schedule)
    is found.

    Example: msc parallel plan samples/mlp/mlp.mir --devices 8 --train
    """
    from msc.driver.reports import parallel_plans

    if (model is None) == (cases is None):
        raise click.UsageError("give a model, or --cases FILE.toml")
    if cases is not None:
        parallel_plans.report_cases(Path(cases), json_out, force, partial(say, end=""))
        return
    assert model is not None
    found = cluster_named(cluster)
    seconds = None if computing is None else computing / 1000
    wish = GraphWish(devices or found.devices, mode, train, mixed, optimizer_level, frozenset(host), seconds)
    if marks is not None and stages > 1:
        raise click.UsageError("--marks is for one stage: a stage of a pipeline is a program of its own")
    module = parallel_plans.read_module(model, parse_dims(dims), expanded=marks is not None)
    graph = parallel_plans.read_graph(module, loaded)
    batch = global_batch or graph.batch
    if batch % graph.batch:
        message = f"a global batch of {batch} is no multiple of the {graph.batch} samples that the model takes"
        raise MscError(Diagnostic("MSC1123", message, help="give a multiple, or a model of fewer samples"))
    planned = plan_model(graph, found, wish, stages, batch // graph.batch, schedule)
    guard = OutputGuard((Path(model),), force)
    if marks is not None:
        parallel_plans.mark(module, planned)
        with OutputSet(guard) as written:
            written.write(Path(marks), parallel_plans.marked_text(module), parallel_plans.is_marked)
    say(parallel_plans.report_plan(planned, Path(model).name, json_out, trace, strategy, guard), end="")


@command.command(name="measure", cls=Verb)
@click.option("-o", "--output", required=True, metavar="FILE", help="The file of the cluster, NAME.toml.")
@click.option("--force", is_flag=True, help="Replace a file that msc did not write.")
def measure(output: str, force: bool) -> None:
    """Measure the ranks of a running MPI program and their links, and write the file of the cluster that they are.

    Example: mpirun -n 4 msc parallel measure -o cluster.toml
    """
    from msc.planner import measuring

    mpi = measuring.library()
    found = measuring.measure(mpi)
    if mpi.COMM_WORLD.Get_rank() == 0:
        with OutputSet(OutputGuard((), force)) as written:
            written.write(Path(output), MEASURED + cluster_text(found), is_measured)
        links = ", ".join(
            f"{link.name} {link.bandwidth / 1e9:.3g} GB/s, {link.latency * 1e6:.3g} us" for link in found.links
        )
        say(f"{found.title}: {found.peaks.f32 / 1e9:.3g} GFLOP/s, {links}; written to {output}")
