"""``python -m benchmarks MODEL...``: see ``--help``."""

from __future__ import annotations

import sys
from pathlib import Path

import click
import numpy as np
from rich.console import Console

from benchmarks.measure import Plan, interleaved, quiet
from benchmarks.model import Array, Model
from benchmarks.models import MODELS
from benchmarks.peers import PEERS, Peer, PeerError, Runner
from benchmarks.report import ModelResult, PeerResult, show, show_machine, show_summary, write
from msc.runtime.machine import Machine, probe
from msc.support.diagnostics import MscError

RESULTS = Path(__file__).resolve().parent / "results"
DEFAULT_PEERS = "msc,ort,ort-bound"
TOLERANCE = 1e-4
"""Largest accepted difference of two engines, relative to the largest magnitude in the result."""


def _chosen_peers(names: str, console: Console) -> list[Peer]:
    """The installed ones of the named engines, in the order given; the first is the base."""
    peers: list[Peer] = []
    for name in names.split(","):
        if name not in PEERS:
            raise click.BadParameter(f"unknown engine '{name}'; known: {', '.join(PEERS)}", param_hint="--peers")
        if PEERS[name].version() is None:
            console.print(f"{name}: not installed (pip install {PEERS[name].package})")
        else:
            peers.append(PEERS[name])
    if not peers:
        raise click.ClickException("none of the engines is installed")
    return peers


def _difference(result: Array, expected: Array) -> float:
    """Largest absolute difference. Raises PeerError where the result is not the same within the tolerance."""
    if result.shape != expected.shape:
        raise PeerError(f"it gives shape {result.shape}, expected {expected.shape}")
    difference = float(np.max(np.abs(result - expected)))
    if not difference <= TOLERANCE * float(np.max(np.abs(expected))):
        raise PeerError(f"its result differs by {difference:.2e}: not the same computation")
    return difference


def _loaded(
    peers: list[Peer], model: Model, inputs: list[Array], threads: int
) -> tuple[dict[str, Runner], dict[str, float], dict[str, str]]:
    """The engines that run the model as the base does, their differences from it, and why others do not."""
    runners: dict[str, Runner] = {}
    differences: dict[str, float] = {}
    refused: dict[str, str] = {}
    expected: Array | None = None
    for peer in peers:
        try:
            run = peer.load(model, inputs, threads)
            result = np.array(run())
            expected = result if expected is None else expected
            differences[peer.name] = _difference(result, expected)
            runners[peer.name] = run
        except (MscError, PeerError, ImportError, OSError, RuntimeError, ValueError) as error:
            refused[peer.name] = str(error).strip().partition("\n")[0][:300]
    return runners, differences, refused


def _measure(model: Model, peers: list[Peer], threads: int, plan: Plan) -> ModelResult:
    example = model.example()
    inputs = list(example.values())
    runners, differences, refused = _loaded(peers, model, inputs, threads)
    if peers[0].name in refused:
        raise click.ClickException(f"{model.name}: {peers[0].name}: {refused[peers[0].name]}")
    moved = model.weight_bytes + sum(array.nbytes for array in inputs) + runners[peers[0].name]().nbytes
    seconds = interleaved(runners, plan)
    found = [
        PeerResult(peer.name, peer.version() or "", peer.call, seconds[peer.name], differences[peer.name])
        for peer in peers
        if peer.name in runners
    ]
    return ModelResult(model.name, model.multiply_adds, moved, threads, found, refused)


def _machine(threads: int, console: Console) -> Machine | None:
    try:
        machine = probe(threads)
    except MscError as error:
        console.print(f"machine not measured: {error}")
        return None
    show_machine(machine, console)
    return machine


def _numbers(_context: click.Context, _parameter: click.Parameter, text: str) -> list[int]:
    if not all(item.isdecimal() and int(item) > 0 for item in text.split(",")):
        raise click.BadParameter("wanted numbers above 0, separated by commas")
    return [int(item) for item in text.split(",")]


@click.command(epilog="Example: python -m benchmarks lenet5 mlp --peers msc,ort --rounds 50")
@click.argument("models", nargs=-1, type=click.Choice(list(MODELS)))
@click.option("--all", "every", is_flag=True, help="Every model.")
@click.option("--peers", help=f"Of: {', '.join(PEERS)}; first = base. [default: {DEFAULT_PEERS}; --all: every one]")
@click.option("--threads", default="1", show_default=True, callback=_numbers, help="For every engine; 1,2 for both.")
@click.option("--rounds", default=30, show_default=True, type=click.IntRange(1), help="Turns of each engine.")
@click.option("--pin/--no-pin", default=True, show_default=True, help="Keep the process on as many CPUs as threads.")
@click.option("--json", "path", type=click.Path(path_type=Path), help="[default: benchmarks/results/<models>.json]")
def main(
    models: tuple[str, ...],
    every: bool,
    peers: str | None,
    threads: list[int],
    rounds: int,
    pin: bool,
    path: Path | None,
) -> None:
    """Latency of MODELS under several engines, interleaved in one process, results compared first."""
    names = list(MODELS) if every else list(models)
    if not names:
        raise click.UsageError(f"name models, or --all; known: {', '.join(MODELS)}")
    console = Console(width=None if sys.stdout.isatty() else 140)
    chosen = _chosen_peers(peers or (",".join(PEERS) if every else DEFAULT_PEERS), console)
    path = path or RESULTS / f"{'all' if every else '-'.join(names)}.json"
    results: list[ModelResult] = []
    machines: list[Machine] = []
    for count in threads:
        plan = Plan(rounds, seconds_between_turns=0.03 if count > 1 else 0.0)
        with quiet(count, pin=pin):
            machine = _machine(count, console)
            machines += [machine] if machine is not None else []
            for name in names:
                results.append(_measure(MODELS[name], chosen, count, plan))
                show(results[-1], machine, console)
                write(results, machines, path)
    show_summary(results, console)
    console.print(f"wrote {path}")


if __name__ == "__main__":
    main(prog_name="python -m benchmarks")
