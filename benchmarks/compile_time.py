"""How long networks take to compile, cold: ``python -m benchmarks.compile_time [NETWORK]... --json out.json``.

Each network of ``torch_models/classification`` is exported to ONNX once, and compiled to a shared library by the `msc`
of this checkout in a process of its own, kept on as many processors as asked for, without the cache, with the bytecode
that an installation has. `--double` compiles models of our own instead, each of two sizes, one twice the other: their
ratio shows what grows faster than the model. A row has the wall time, the CPU time of msc and of the C compilers that
it started, and where the wall time went. Results are written after each network.
"""

from __future__ import annotations

import compileall
import json
import os
import re
import resource
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import click

import msc

RESULTS = Path(__file__).resolve().parent / "results" / "compile_time.json"
BAR = 15.0
"""Seconds on two processors that no network of the zoo should take more than."""
_STEP = re.compile(r"^(\S+) +(\S+) +([0-9.]+)$", re.MULTILINE)
_TIME = re.compile(r"(\d+)m([0-9.]+)s")


@dataclass(frozen=True)
class Row:
    """Seconds: of the clock, of all processors, of these the C compilers', and of the clock for each stage and step."""

    network: str
    processors: int
    threads: int
    wall: float
    cpu: float
    c_compilers: float
    stages: Mapping[str, float]
    steps: Mapping[str, float]

    def __str__(self) -> str:
        slowest = sorted(self.steps, key=lambda step: -self.steps[step])[:3]
        parts = ", ".join(f"{step} {self.steps[step]:.1f}" for step in slowest)
        cpu = f"CPU of msc {self.cpu - self.c_compilers:6.1f} s, of C compilers {self.c_compilers:6.1f} s"
        return f"{self.network:22} {self.wall:6.1f} s   {cpu}   {parts}"


def steps_of(timing: str) -> dict[str, float]:
    """Seconds of each step of `--timing`'s table, as `stage step`."""
    return {f"{stage} {step}": float(ms) / 1e3 for stage, step, ms in _STEP.findall(timing)}


def timing_compiler(folder: Path) -> tuple[Path, Path]:
    """A program that runs $CC, else cc, and a file to which it adds the seconds that this took, user and system."""
    program, times = folder / "timing-cc", folder / "times"
    compiler = os.environ.get("CC") or "cc"
    program.write_text(
        f'#!/bin/sh\n{compiler} "$@"\nstatus=$?\ntimes >>"{times}"\nexit $status\n',
        encoding="utf-8",
    )
    program.chmod(0o755)
    times.write_text("", encoding="utf-8")
    return program, times


def seconds_in(times: str) -> float:
    """The sum of what the shell writes as `0m1.250s 0m0.020s`."""
    return sum(60 * int(minutes) + float(seconds) for minutes, seconds in _TIME.findall(times))


def measured(network: str, model: Path, processors: int, threads: int) -> Row:
    """Compile a model once. Raises ClickException with what msc says where that fails."""
    out = model.with_suffix(".so")
    command = [sys.executable, "-m", "msc.driver", "compile", str(model), "-o", str(out), "--no-cache", "--force"]
    cpus = sorted(os.sched_getaffinity(0))[:processors]
    compiler, times = timing_compiler(out.parent)
    before, start = _cpu(), time.perf_counter()
    run = subprocess.run(
        [*command, "--timing", "--threads", str(threads)],
        capture_output=True,
        text=True,
        env={**os.environ, "CC": str(compiler), "PYTHONDONTWRITEBYTECODE": ""},
        preexec_fn=lambda: os.sched_setaffinity(0, cpus),
    )
    if run.returncode:
        raise click.ClickException(f"{network} does not compile: {run.stderr}")
    wall, cpu = time.perf_counter() - start, _cpu() - before
    steps = steps_of(run.stderr)
    stages: dict[str, float] = {}
    for name, seconds in steps.items():
        stage = name.partition(" ")[0]
        stages[stage] = stages.get(stage, 0.0) + seconds
    return Row(network, processors, threads, wall, cpu, seconds_in(times.read_text("utf-8")), stages, steps)


def _cpu() -> float:
    """Seconds that processes which this one started and waited for have taken, those that they started included."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def chain(size: int) -> str:
    """Activations one after another."""
    steps = [f"%v{k + 1} = ms.{('relu', 'sigmoid', 'tanh')[k % 3]} %v{k}" for k in range(size)]
    return _function(steps, f"%v{size}")


def branches(size: int) -> str:
    """As many branches from one tensor, which meet in sums."""
    steps = ["%s0 = ms.relu %v0"]
    for k in range(size):
        steps += [f"%b{k} = ms.tanh %v0", f"%s{k + 1} = ms.add %s{k}, %b{k}"]
    return _function(steps, f"%s{size}")


def softmaxes(size: int) -> str:
    """Reductions one after another, which cannot be one kernel."""
    return _function([f"%v{k + 1} = ms.softmax %v{k}" for k in range(size)], f"%v{size}")


_SHAPE = "8x64xf32"
DOUBLED = {"chain": (chain, 400), "branches": (branches, 200), "softmaxes": (softmaxes, 100)}
"""Models that are doubled, with the smaller size."""


def _function(steps: Sequence[str], result: str) -> str:
    tensor = f"tensor<{_SHAPE}>"
    lines = "\n  ".join([*steps, f"func.return {result} : {tensor}"])
    return f'func.func @main(%v0: {tensor} {{ms.name = "x"}}) -> ({tensor} {{ms.name = "y"}}) {{\n  {lines}\n}}\n'


def doubled(name: str, folder: Path, processors: int) -> tuple[Row, Row]:
    """Rows of a model of our own and of the one twice as large."""
    write, size = DOUBLED[name]
    rows: list[Row] = []
    for count in (size, 2 * size):
        path = folder / f"{name}{count}.mir"
        path.write_text(write(count), encoding="utf-8")
        rows.append(measured(f"{name} {count}", path, processors, 1))
    return rows[0], rows[1]


def _exported(network: str, folder: Path) -> Path:
    from benchmarks.torch_models.classification.catalogue import ZOO  # PyTorch takes seconds to import
    from benchmarks.torch_models.export import export

    path = folder / f"{network}.onnx"
    return path if path.exists() else export(ZOO[network], "script", path)


def _networks() -> list[str]:
    from benchmarks.torch_models.classification.catalogue import ZOO

    return list(ZOO)


@click.command(epilog="Example: python -m benchmarks.compile_time densenet121 swin_t --models /tmp/zoo")
@click.argument("networks", nargs=-1)
@click.option("--processors", default=2, show_default=True, type=click.IntRange(1), help="That msc may run on.")
@click.option("--threads", default=2, show_default=True, type=click.IntRange(0), help="Of the compiled network.")
@click.option("--models", type=click.Path(path_type=Path), help="Keep ONNX files there, and take those that are there.")
@click.option("--double", is_flag=True, help="Compile models of our own, each at two sizes.")
@click.option("--json", "path", type=click.Path(path_type=Path), default=RESULTS, show_default=False)
def main(
    networks: tuple[str, ...], processors: int, threads: int, models: Path | None, double: bool, path: Path
) -> None:
    """Cold compile times of NETWORKS of the classification zoo, all by default."""
    known = list(DOUBLED) if double else _networks()
    for name in networks:
        if name not in known:
            raise click.UsageError(f"there is no network '{name}'; there are {', '.join(known)}")
    compileall.compile_dir(Path(msc.__file__).parent, quiet=2)
    if double:
        with TemporaryDirectory(prefix="msc-compile-time-") as temporary:
            for name in networks or known:
                first, second = doubled(name, Path(temporary), processors)
                click.echo(f"{first}\n{second}\n{name}: CPU time times {second.cpu / first.cpu:.2f}")
        return
    rows: list[Row] = []
    with TemporaryDirectory(prefix="msc-compile-time-") as temporary:
        folder = models or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for name in networks or known:
            rows.append(measured(name, _exported(name, folder), processors, threads))
            click.echo(rows[-1])
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps([asdict(row) for row in rows], indent=1), encoding="utf-8")
    slow = [row.network for row in rows if row.wall > BAR]
    click.echo(f"wrote {path}; " + (f"over {BAR:.0f} s: {', '.join(slow)}" if slow else f"none takes {BAR:.0f} s"))


if __name__ == "__main__":
    main(prog_name="python -m benchmarks.compile_time")
