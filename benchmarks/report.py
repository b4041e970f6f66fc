"""What is shown and kept of a measurement: a table on the terminal, and everything as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.measure import Spread, ratios
from msc.runtime.machine import Machine


@dataclass(frozen=True)
class PeerResult:
    """One engine on one model: seconds per call in each round, and its largest difference from the base's result."""

    name: str
    version: str
    call: str
    seconds: list[float]
    difference: float


@dataclass(frozen=True)
class ModelResult:
    """One model under all engines; the first is the base of the ratios."""

    model: str
    multiply_adds: int
    threads: int
    peers: list[PeerResult]

    @property
    def base(self) -> PeerResult:
        return self.peers[0]


def _cell(spread: Spread, factor: float = 1.0) -> str:
    """The median and, in brackets, the quartiles."""
    return f"{spread.median * factor:.4g} ({spread.low * factor:.3g}-{spread.high * factor:.3g})"


def _row(result: ModelResult, peer: PeerResult, machine: Machine | None) -> list[str]:
    spread = Spread.of(peer.seconds)
    cells = [peer.name, _cell(spread, 1e6), _cell(ratios(peer.seconds, result.base.seconds))]
    if machine is not None:
        peak = machine.multiply_adds_per_second * result.threads
        cells.append(f"{result.multiply_adds / spread.median / peak:.1%}")
    return [*cells, f"{peer.difference:.1e}"]


def show(result: ModelResult, machine: Machine | None, console: Console) -> None:
    """Print one table: medians and quartiles over the rounds, and what a call of each engine is."""
    threads = f"{result.threads} thread" + ("s" if result.threads > 1 else "")
    title = f"{result.model}: {result.multiply_adds:,} multiply-adds, {threads}, {len(result.base.seconds)} rounds"
    table = Table(title=title)
    table.add_column("engine", no_wrap=True)
    peak = ["of peak"] if machine is not None else []
    for heading in ("µs per call", f"x {result.base.name}", *peak, "diff"):
        table.add_column(heading, justify="right", no_wrap=True)
    for peer in result.peers:
        table.add_row(*_row(result, peer, machine))
    console.print(table)
    for peer in result.peers:
        console.print(f"  {peer.name} {peer.version}: {peer.call}", highlight=False)


def show_machine(machine: Machine, console: Console) -> None:
    """Print the ceilings of one core."""
    peak, bandwidth = machine.multiply_adds_per_second * 1e-9, machine.bytes_per_second * 1e-9
    console.print(f"{machine.cpu}, {machine.cpus} CPUs")
    console.print(f"one core: {peak:.1f} G multiply-adds/s in f32, {bandwidth:.1f} GB/s (triad)")


def write(results: list[ModelResult], machine: Machine | None, path: Path) -> None:
    """Everything measured, every round of it, as one JSON file."""
    document = {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": asdict(machine) if machine is not None else None,
        "results": [asdict(result) for result in results],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
