"""`msc tune`: search for faster schedules by measurement."""

from __future__ import annotations

from pathlib import Path

import click

from msc.driver.completion import files
from msc.driver.options import CompileOptions
from msc.driver.verbs.model_options import with_compile_options


@click.command(name="tune")
@click.argument("model", shell_complete=files)
@click.option("-o", "--output", "out", metavar="FILE", help="Where to write what was found. [default: MODEL.tune.json]")
@click.option("--budget", default="60s", show_default=True, metavar="TIME", help="How long to search: 90s, 5m, 1h.")
@click.option("--input", "inputs", multiple=True, metavar="NAME=VALUE", help="@x.npy, or a literal like 2xf32=1,2.")
@click.option("--random", "seed", type=int, default=0, show_default=True, metavar="SEED", help="For all other inputs.")
@click.option("--quiet", is_flag=True, help="Do not tell what is found on the way.")
@with_compile_options
def command(
    model: str, out: str | None, budget: str, inputs: tuple[str, ...], seed: int, quiet: bool, options: CompileOptions
) -> None:
    """Time schedules of MODEL's kernels on this machine and write those that beat msc's own choice, for --tuned.

    Example: msc tune lenet5.mir --budget 60s && msc compile lenet5.mir --tuned lenet5.tune.json -o lenet5.so
    """
    from msc.driver.benchmark import Workload
    from msc.driver.compile import stem_of
    from msc.driver.durations import parse_duration
    from msc.driver.model_inputs import read_values
    from msc.driver.tuning import tune
    from msc.support.files import write_text

    path = Path(out) if out is not None else Path(f"{stem_of(model)}.tune.json")
    workload = Workload(read_values(inputs), seed, warm_up=3, seconds=0.2)
    found = tune(model, options, workload, parse_duration(budget), _silent if quiet else _tell)
    write_text(path, found.to_json())


def _tell(line: str) -> None:
    click.echo(line, err=True)


def _silent(line: str) -> None:
    """What --quiet does with a line."""
