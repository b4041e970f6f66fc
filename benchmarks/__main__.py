"""``python -m benchmarks MODEL...``: see ``--help``."""

from __future__ import annotations

import sys
from pathlib import Path

import click
from rich.console import Console

from benchmarks.measure import Plan, quiet
from benchmarks.models import MODELS, OPEN, OPERATORS, QUANTISED
from benchmarks.peers import PEERS
from benchmarks.report import ModelResult, show, show_machine, show_summary, write
from benchmarks.rows import isolated_row
from msc.runtime.machine import Roofline, probe
from msc.support.diagnostics import MscError

RESULTS = Path(__file__).resolve().parent / "results"
DEFAULT_PEERS = "msc,ort,ort-bound"
OPEN_PEERS = "msc,msc-fixed,ort,openvino"
QUANTISED_PEERS = "msc,msc-f32,ort,openvino"


def _chosen_peers(names: str, console: Console) -> list[str]:
    """The installed ones of the named engines, in the order given; the first is the base."""
    peers: list[str] = []
    for name in names.split(","):
        if name not in PEERS:
            raise click.BadParameter(f"unknown engine '{name}'; known: {', '.join(PEERS)}", param_hint="--peers")
        if PEERS[name].version() is None:
            console.print(f"{name}: not installed (pip install {PEERS[name].package})")
        else:
            peers.append(name)
    if not peers:
        raise click.ClickException("none of the engines is installed")
    return peers


def _machine(threads: int, console: Console) -> Roofline | None:
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
@click.option("--all", "every", is_flag=True, help="Every model of fixed sizes but the single operators.")
@click.option("--operators", is_flag=True, help="Every single operator.")
@click.option("--open", "opened", is_flag=True, help="Every model whose sizes a call decides, at several sizes.")
@click.option("--quantised", is_flag=True, help="Networks, products and convolutions in bytes.")
@click.option(
    "--peers",
    help=f"Of: {', '.join(PEERS)}; first = base. [default: {DEFAULT_PEERS}; --all: every one; --open: {OPEN_PEERS}; "
    f"--quantised: {QUANTISED_PEERS}]",
)
@click.option("--threads", default="1", show_default=True, callback=_numbers, help="For every engine; 1,2 for both.")
@click.option("--rounds", default=30, show_default=True, type=click.IntRange(1), help="Turns of each engine.")
@click.option("--cpu-time", is_flag=True, help="Processor time instead of the clock's: beside other work, one thread.")
@click.option("--pin/--no-pin", default=True, show_default=True, help="Keep the process on as many CPUs as threads.")
@click.option("--json", "path", type=click.Path(path_type=Path), help="[default: benchmarks/results/<models>.json]")
def main(
    models: tuple[str, ...],
    every: bool,
    operators: bool,
    opened: bool,
    quantised: bool,
    peers: str | None,
    threads: list[int],
    rounds: int,
    cpu_time: bool,
    pin: bool,
    path: Path | None,
) -> None:
    """Latency of MODELS under several engines, interleaved in one process a model, results compared first."""
    groups = {
        "all": [n for n in MODELS if n not in (*OPERATORS, *OPEN, *QUANTISED)] if every else [],
        "operators": OPERATORS * operators,
        "open": OPEN * opened,
        "quantised": QUANTISED * quantised,
    }
    names = list(dict.fromkeys([*(name for group in groups.values() for name in group), *models]))
    if not names:
        raise click.UsageError(f"name models, --all, --operators, --open or --quantised; known: {', '.join(MODELS)}")
    console = Console(width=None if sys.stdout.isatty() else 140)
    engines = ",".join(peer for peer in PEERS if peer not in ("msc-fixed", "msc-f32")) if every else DEFAULT_PEERS
    chosen = _chosen_peers(peers or (OPEN_PEERS if opened else QUANTISED_PEERS if quantised else engines), console)
    title = "-".join((*(group for group, found in groups.items() if found), *models))
    path = path or RESULTS / f"{title}.json"
    results: list[ModelResult] = []
    machines: list[Roofline] = []
    for count in threads:
        plan = Plan(rounds, seconds_between_turns=0.03 if count > 1 else 0.0, cpu_time=cpu_time)
        with quiet(count, pin=pin):
            machine = _machine(count, console)
        machines += [machine] if machine is not None else []
        for name in names:
            results.append(isolated_row(name, chosen, count, plan, pin=pin))
            show(results[-1], machine, console)
            write(results, machines, path)
    show_summary(results, console)
    console.print(f"wrote {path}")


if __name__ == "__main__":
    main(prog_name="python -m benchmarks")
