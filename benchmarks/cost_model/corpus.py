"""The corpus: kernels as text, schedules as text, and the measured time of each schedule, on one machine.

A file has one JSON object a line: first the machine, then a kernel a line. A kernel is a module of the `gk` stage whose
@main runs it once; a schedule is the lines of its tree. Times are microseconds of one call on one thread, on inputs
that the call before left in the caches: of each measurement the least of many calls that took turns with the other
schedules. Where several measurements have one time, it is the least of theirs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / "corpus"
"""Where the checked-in files are, one a machine."""


@dataclass(frozen=True)
class Measured:
    """One schedule of a kernel: its lines, and microseconds of a call in each measurement."""

    schedule: tuple[str, ...]
    times: tuple[float, ...]

    @property
    def us(self) -> float:
        """The least time counts."""
        return min(self.times)


@dataclass(frozen=True)
class Entry:
    """A kernel of a model with measured schedules; the first is the one that msc chose when it was measured.

    `ghz` is the clock of the core right after the measurement, while it does multiply-adds.
    """

    model: str
    label: str
    kernel: str
    ghz: float
    runs: tuple[Measured, ...]

    def with_times(self, ghz: float, us: Sequence[float]) -> Entry:
        """The entry after another measurement; the highest clock counts."""
        runs = (replace(run, times=(*run.times, round(now, 3))) for run, now in zip(self.runs, us, strict=True))
        return replace(self, ghz=max(self.ghz, round(ghz, 3)), runs=tuple(runs))


@dataclass(frozen=True)
class Corpus:
    """Measurements of one machine: `cpu` as the system names it."""

    cpu: str
    entries: tuple[Entry, ...]

    @staticmethod
    def read(path: Path) -> Corpus:
        head, *lines = path.read_text(encoding="utf-8").splitlines()
        return Corpus(json.loads(head)["cpu"], tuple(map(_entry, lines)))


def append(path: Path, cpu: str, entry: Entry) -> None:
    """Add a kernel to a file, which is made if it is not there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        if not file.tell():
            file.write(json.dumps({"cpu": cpu}) + "\n")
        file.write(json.dumps(asdict(entry)) + "\n")


def write(path: Path, corpus: Corpus) -> None:
    """Write a file anew."""
    lines = [json.dumps({"cpu": corpus.cpu}), *(json.dumps(asdict(entry)) for entry in corpus.entries)]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def corpora() -> Iterator[tuple[str, Corpus]]:
    """Every checked-in corpus with the name of its machine."""
    for path in sorted(FOLDER.glob("*.jsonl")):
        yield path.stem, Corpus.read(path)


def _entry(line: str) -> Entry:
    data = json.loads(line)
    runs = tuple(Measured(tuple(run["schedule"]), tuple(run["times"])) for run in data["runs"])
    return Entry(data["model"], data["label"], data["kernel"], data["ghz"], runs)
