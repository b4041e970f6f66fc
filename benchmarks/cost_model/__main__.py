"""``python -m benchmarks.cost_model``: see ``--help``."""

from __future__ import annotations

from pathlib import Path

import click

from benchmarks.cost_model import collect as collecting
from benchmarks.cost_model import fit as fitting
from benchmarks.cost_model import report as reporting
from benchmarks.cost_model.corpus import FOLDER, Corpus
from benchmarks.cost_model.kernels import subjects
from benchmarks.cost_model.sources import SOURCES
from msc.targets.catalogue import machine_named


@click.command(epilog="Example: python -m benchmarks.cost_model --collect cascadelake lenet5 mlp --cpu 3")
@click.argument("models", nargs=-1, type=click.Choice(list(SOURCES)))
@click.option("--collect", "collected", metavar="MACHINE", help="Measure kernels of MODELS (of all) and neighbours.")
@click.option("--compile", "compiled", metavar="MACHINE", help="Build the kernels of its corpus for --repeat.")
@click.option("--repeat", "repeated", metavar="MACHINE", help="Measure its corpus once more; the least times count.")
@click.option("--built", type=click.Path(path_type=Path), help="Where --compile and --repeat keep built kernels.")
@click.option("--renew", "renewed", metavar="MACHINE", help="Measure kernels whose schedules no longer fit them.")
@click.option("--fit", "fitted", metavar="MACHINE", help="Print the figures that fit the machine's corpus best.")
@click.option("--report", is_flag=True, help="Write the tables of docs/evidence/cost-model.md.")
@click.option("--cpu", default=0, show_default=True, help="The processor that measures.")
@click.option("--seconds", default=3600.0, show_default=True, help="Time to spend on --collect, --compile or --repeat.")
def main(
    models: tuple[str, ...],
    collected: str | None,
    compiled: str | None,
    repeated: str | None,
    built: Path | None,
    renewed: str | None,
    fitted: str | None,
    report: bool,
    cpu: int,
    seconds: float,
) -> None:
    """The cost model beside measured times: MACHINE names a file of msc.targets, and a corpus."""
    if collected:
        chosen = [SOURCES[name] for name in models or SOURCES]
        collecting.collect(chosen, _corpus(collected), cpu, seconds, click.echo)
    if (compiled or repeated) and built is None:
        raise click.UsageError("--compile and --repeat need --built FOLDER")
    if compiled and built:
        collecting.compile_all(_corpus(compiled), built, seconds, click.echo)
    if repeated and built:
        collecting.repeat(_corpus(repeated), built, cpu, seconds, click.echo)
    if renewed:
        collecting.renew(_corpus(renewed), cpu, click.echo)
    if fitted:
        machine = machine_named(fitted)
        kernels = list(subjects(Corpus.read(_corpus(fitted)), machine))
        found = fitting.fitted(kernels, machine, click.echo)
        for name in fitting.FITTED:
            click.echo(f"{name} = {fitting.figure(found, name):.4g}")
    if report:
        reporting.write()


def _corpus(machine: str) -> Path:
    return FOLDER / f"{machine}.jsonl"


if __name__ == "__main__":
    main(prog_name="python -m benchmarks.cost_model")
