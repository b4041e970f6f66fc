"""What is shown and kept of a measurement: a table on the terminal, and everything as JSON."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.table import Table

from benchmarks.measure import Spread, ratios
from msc.runtime.machine import Roofline
from msc.support.wording import counted


@dataclass(frozen=True)
class PeerResult:
    """One engine on one model: seconds per call in each round, and its largest difference from the base's result."""

    name: str
    version: str
    call: str
    seconds: list[float]
    difference: float
    clocks: list[float] = field(default_factory=list[float])
    """Multiply-adds a second of the machine right after each turn, at the clock that the engine has left."""


@dataclass(frozen=True)
class ModelResult:
    """One model under all engines; the first is the base of the ratios. None where the base can't run it."""

    model: str
    multiply_adds: int
    bytes: int
    """What a call must move at least: weights, inputs and the result, each once."""
    threads: int
    peers: list[PeerResult]
    refused: dict[str, str] = field(default_factory=dict[str, str])
    """Engines that can't run the model, with their reasons."""
    peaks: list[float] = field(default_factory=list[float])
    """Multiply-adds a second of the machine, measured before each round."""

    @property
    def base(self) -> PeerResult:
        return self.peers[0]

    @property
    def best_other(self) -> PeerResult | None:
        """The fastest engine that is not the base, and not msc in two ways; None without one."""
        others = [peer for peer in self.peers[1:] if not {peer.name, self.base.name} <= {"msc", "msc-fixed", "msc-f32"}]
        return min(others, key=lambda peer: Spread.of(peer.seconds).median, default=None)

    @property
    def advantage(self) -> float | None:
        """How many times as long as the base the best other engine takes; above 1 the base is faster."""
        best = self.best_other
        return None if best is None else ratios(best.seconds, self.base.seconds).median


def _cell(spread: Spread, factor: float = 1.0) -> str:
    """The median and, in brackets, the quartiles."""
    return f"{spread.median * factor:.4g} ({spread.low * factor:.3g}-{spread.high * factor:.3g})"


def _row(result: ModelResult, peer: PeerResult, machine: Roofline | None) -> list[str]:
    spread = Spread.of(peer.seconds)
    cells = [peer.name, _cell(spread, 1e6), _cell(ratios(peer.seconds, result.base.seconds))]
    cells += [f"{2e-9 * result.multiply_adds / spread.median:.4g}", f"{1e-9 * result.bytes / spread.median:.3g}"]
    if result.peaks:
        cells.append(_share(result, peer, result.peaks))
    if peer.clocks:
        cells.append(_share(result, peer, peer.clocks))
    if machine is not None:
        cells.append(f"{result.bytes / spread.median / machine.bandwidth(result.bytes):.1%}")
    return [*cells, f"{peer.difference:.1e}"]


def _share(result: ModelResult, peer: PeerResult, peaks: list[float]) -> str:
    """Of the machine's multiply-adds: the median over the rounds."""
    rounds = zip(peer.seconds, peaks, strict=True)
    return f"{median(result.multiply_adds / seconds / peak for seconds, peak in rounds):.1%}"


def show(result: ModelResult, machine: Roofline | None, console: Console) -> None:
    """Print one table: medians and quartiles over the rounds, and what a call of each engine is."""
    if result.peers:
        _show_peers(result, machine, console)
    else:
        console.print(f"{result.model}: not measured")
    for name, reason in result.refused.items():
        console.print(f"  {name} can't run it: {reason}", highlight=False, markup=False)


def _show_peers(result: ModelResult, machine: Roofline | None, console: Console) -> None:
    work = counted(result.multiply_adds, "multiply-add")
    extent = f"{counted(result.threads, 'thread')}, {counted(len(result.base.seconds), 'round')}"
    table = Table(title=f"{result.model}: {work}, {extent}")
    table.add_column("engine", no_wrap=True)
    shares = ["of peak"] if result.peaks else []
    shares += ["at its clock"] if result.base.clocks else []
    shares += ["of bandwidth"] if machine is not None else []
    for heading in ("µs per call", f"x {result.base.name}", "GFLOP/s", "GB/s", *shares, "diff"):
        table.add_column(heading, justify="right", no_wrap=True)
    for peer in result.peers:
        table.add_row(*_row(result, peer, machine))
    console.print(table)
    if result.peaks:
        console.print(f"  the machine in these rounds: {_cell(Spread.of(result.peaks), 2e-9)} GFLOP/s", highlight=False)
    for peer in result.peers:
        console.print(f"  {peer.name} {peer.version}: {peer.call}", highlight=False)


def show_summary(results: list[ModelResult], console: Console) -> None:
    """One row a model and number of threads, those first where the base does worst; then the geometric means.

    Models that the base can't run are listed last.
    """
    table = Table(title="Against the best other engine")
    for heading in ("model", "threads", "base µs", "best other", "its µs", "its µs / base's"):
        table.add_column(heading, no_wrap=True)
    compared = [(result.advantage, result) for result in results]
    rows = sorted(((a, r) for a, r in compared if a is not None), key=lambda row: row[0])
    for advantage, result in rows:
        table.add_row(*_summary_row(advantage, result))
    console.print(table)
    for threads in sorted({result.threads for _, result in rows}):
        logs = [math.log(advantage) for advantage, result in rows if result.threads == threads]
        console.print(
            f"geometric mean at {counted(threads, 'thread')}: {math.exp(sum(logs) / len(logs)):.3f} "
            f"over {counted(len(logs), 'model')}"
        )
    for result in results:
        if not result.peers:
            console.print(f"{result.model}, {counted(result.threads, 'thread')}: not measured", highlight=False)


def _summary_row(advantage: float, result: ModelResult) -> list[str]:
    best = result.best_other
    assert best is not None
    times = [f"{Spread.of(peer.seconds).median * 1e6:.4g}" for peer in (result.base, best)]
    return [result.model, str(result.threads), times[0], best.name, times[1], f"{advantage:.2f}"]


def show_machine(machine: Roofline, console: Console) -> None:
    """Print the ceilings of as many threads as are measured."""
    peak, bandwidth = machine.flops_per_second * 1e-9, machine.bytes_per_second * 1e-9
    console.print(f"{machine.cpu}, {counted(machine.cpus, 'CPU')}")
    console.print(f"{counted(machine.threads, 'thread')}: {peak:.1f} GFLOP/s in f32, {bandwidth:.1f} GB/s (triad)")


def write(results: list[ModelResult], machines: list[Roofline], path: Path) -> None:
    """Everything measured, every round of it, as one JSON file."""
    document = {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "machines": [asdict(machine) for machine in machines],
        "results": [{**asdict(result), "advantage": result.advantage} for result in results],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
