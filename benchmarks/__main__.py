"""``python -m benchmarks MODEL...``: see ``--help``."""

from __future__ import annotations

from pathlib import Path

import click
import numpy as np
from rich.console import Console

from benchmarks.measure import Plan, interleaved, quiet
from benchmarks.models import MODELS, Array, Model
from benchmarks.peers import PEERS, Peer, Runner
from benchmarks.report import ModelResult, PeerResult, show, show_machine, write
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


def _difference(name: str, result: Array, expected: Array) -> float:
    """Largest absolute difference; refuses a result that is not the same within the tolerance."""
    if result.shape != expected.shape:
        raise click.ClickException(f"{name} gives shape {result.shape}, expected {expected.shape}")
    difference = float(np.max(np.abs(result - expected)))
    if not difference <= TOLERANCE * max(1.0, float(np.max(np.abs(expected)))):
        raise click.ClickException(f"{name} differs from the base by {difference:.2e}: not the same computation")
    return difference


def _load(peer: Peer, model: Model, inputs: list[Array], threads: int) -> Runner:
    try:
        return peer.load(model, inputs, threads)
    except (MscError, ImportError) as error:
        raise click.ClickException(f"{peer.name}: {error}") from error


def _measure(model: Model, peers: list[Peer], threads: int, plan: Plan) -> ModelResult:
    inputs = model.example()
    runners = {peer.name: _load(peer, model, inputs, threads) for peer in peers}
    expected = np.array(runners[peers[0].name]())
    differences = {name: _difference(name, run(), expected) for name, run in runners.items()}
    seconds = interleaved(runners, plan)
    found = [
        PeerResult(peer.name, peer.version() or "", peer.call, seconds[peer.name], differences[peer.name])
        for peer in peers
    ]
    return ModelResult(model.name, model.multiply_adds, threads, found)


def _machine(console: Console) -> Machine | None:
    try:
        machine = probe()
    except MscError as error:
        console.print(f"machine not measured: {error}")
        return None
    show_machine(machine, console)
    return machine


@click.command(epilog="Example: python -m benchmarks lenet5 mlp --peers msc,ort --rounds 50")
@click.argument("models", nargs=-1, required=True, type=click.Choice(list(MODELS)))
@click.option(
    "--peers", default=DEFAULT_PEERS, show_default=True, help=f"Of: {', '.join(PEERS)}; first = base of the ratios."
)
@click.option("--threads", default=1, show_default=True, type=click.IntRange(1), help="Threads for every engine.")
@click.option("--rounds", default=30, show_default=True, type=click.IntRange(1), help="Turns of each engine.")
@click.option("--pin/--no-pin", default=True, show_default=True, help="Keep the process on THREADS CPUs.")
@click.option("--json", "path", type=click.Path(path_type=Path), help="[default: benchmarks/results/<models>.json]")
def main(models: tuple[str, ...], peers: str, threads: int, rounds: int, pin: bool, path: Path | None) -> None:
    """Latency of MODELS (batch 1) under several engines, interleaved in one process, results compared first."""
    console = Console()
    plan = Plan(rounds, seconds_between_turns=0.03 if threads > 1 else 0.0)
    chosen = _chosen_peers(peers, console)
    with quiet(threads, pin=pin):
        machine = _machine(console)
        results: list[ModelResult] = []
        for name in models:
            results.append(_measure(MODELS[name], chosen, threads, plan))
            show(results[-1], machine, console)
    path = path or RESULTS / f"{'-'.join(models)}.json"
    write(results, machine, path)
    console.print(f"wrote {path}")


if __name__ == "__main__":
    main(prog_name="python -m benchmarks")
