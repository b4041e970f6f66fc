"""``python -m benchmarks.training [TASK]... --threads 1 --json out.json``: training steps beside PyTorch's and JAX's.

Each engine begins with the same weights and takes steps on the same batch, in turns. First the losses of five steps are
compared. A row has the time of a step, the memory that a step takes beside data, weights and momenta, and how long it
took to compile the step; for msc also how long inference of the same network takes to compile.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import geometric_mean
from tempfile import TemporaryDirectory

import click
import numpy as np

from benchmarks.measure import Plan, Spread, interleaved, quiet, ratios
from benchmarks.training.engines import ENGINES, Engine, is_installed
from benchmarks.training.networks import TASKS

RESULTS = Path(__file__).resolve().parents[1] / "results" / "training.json"
TOLERANCE = 1e-3
"""Between the losses of the first steps, relative to the first."""


@dataclass(frozen=True)
class Row:
    """What was measured of a task: seconds of a step, peak bytes and seconds to compile, by engine."""

    task: str
    threads: int
    steps: dict[str, Spread]
    ratios: dict[str, Spread]
    """Times of the others by msc's, in each round."""
    peaks: dict[str, int]
    compiles: dict[str, float]
    inference_compile: float

    @property
    def advantage(self) -> float:
        """Over the best of the others."""
        return min((s.median for s in self.ratios.values()), default=1.0)

    def __str__(self) -> str:
        times = "  ".join(f"{name} {s.median * 1e3:8.2f} ms" for name, s in self.steps.items())
        peaks = "  ".join(f"{name} {n / 2**20:.1f}" for name, n in self.peaks.items())
        compile_ = self.compiles["msc"] / self.inference_compile
        return (
            f"{self.task:20} {times}  msc is {self.advantage:.2f} times as fast   peak MiB: {peaks}   "
            f"compile {self.compiles['msc']:.1f} s, {compile_:.1f} times inference's"
        )


def measured(name: str, engines: list[str], threads: int, plan: Plan) -> Row:
    """Compare, then measure. Raises ClickException where losses differ."""
    task = TASKS[name]
    made: dict[str, Engine] = {engine: ENGINES[engine](name, task, threads) for engine in engines}
    losses = {engine: np.array([float(e.step()) for _ in range(5)]) for engine, e in made.items()}
    for engine, found in losses.items():
        if not np.allclose(found, losses["msc"], rtol=0, atol=TOLERANCE * losses["msc"][0]):
            raise click.ClickException(f"{name}: losses of {engine} {found} differ from {losses['msc']}")
    with quiet(threads, pin=True):
        times = interleaved({engine: e.step for engine, e in made.items()}, plan)
    return Row(
        name,
        threads,
        {engine: Spread.of(t) for engine, t in times.items()},
        {engine: ratios(t, times["msc"]) for engine, t in times.items() if engine != "msc"},
        {engine: e.peak_bytes for engine, e in made.items()},
        {engine: e.compile_seconds for engine, e in made.items()},
        made["msc"].inference_compile_seconds or 0.0,
    )


def _isolated(name: str, engines: list[str], threads: int, rounds: int) -> Row:
    """A row in a process of its own."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "row.json"
        command = [sys.executable, "-m", "benchmarks.training", name, "--here", "--json", str(path)]
        command += ["--threads", str(threads), "--rounds", str(rounds), "--engines", ",".join(engines)]
        if subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode:
            raise click.ClickException(f"{name} was not measured")
        (row,) = json.loads(path.read_text())
    for key in ("steps", "ratios"):
        row[key] = {engine: Spread(**spread) for engine, spread in row[key].items()}
    return Row(**row)


def chosen_engines(_context: click.Context, _parameter: click.Parameter, text: str) -> list[str]:
    """The installed ones of the named engines, and msc, which they are compared with; others are told of."""
    names = text.split(",")
    unknown = [name for name in names if name not in ENGINES]
    if unknown:
        raise click.BadParameter(f"unknown engine '{unknown[0]}'; known: {', '.join(ENGINES)}")
    for name in names:
        if not is_installed(name):
            click.echo(f"{name}: not installed (pip install {name.partition('-')[0]})")
    return ["msc", *(name for name in names if name != "msc" and is_installed(name))]


@click.command(epilog="Example: python -m benchmarks.training lenet5-b32 --threads 2")
@click.argument("tasks", nargs=-1, type=click.Choice(list(TASKS)))
@click.option("--engines", default=",".join(ENGINES), show_default=True, callback=chosen_engines)
@click.option("--threads", default=1, show_default=True, type=click.IntRange(1))
@click.option("--rounds", default=20, show_default=True, type=click.IntRange(1))
@click.option("--json", "path", default=RESULTS, type=click.Path(path_type=Path), help="[default: benchmarks/results]")
@click.option("--here", is_flag=True, help="In this process.")
def main(tasks: tuple[str, ...], engines: list[str], threads: int, rounds: int, path: Path, here: bool) -> None:
    """Training steps of TASKS (all by default) under msc, PyTorch and JAX, interleaved."""
    rows: list[Row] = []
    for name in tasks or TASKS:
        row = measured(name, engines, threads, Plan(rounds)) if here else _isolated(name, engines, threads, rounds)
        rows.append(row)
        click.echo(str(row))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps([asdict(r) for r in rows], indent=1))
    advantages = [row.advantage for row in rows]
    click.echo(f"geometric mean {geometric_mean(advantages):.2f}, least {min(advantages):.2f}")


if __name__ == "__main__":
    main(prog_name="python -m benchmarks.training")
