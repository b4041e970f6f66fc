"""A record of the schedules that a target gets: for each kernel of each layer its lines, as `explain` shows them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path
from tempfile import TemporaryDirectory

from msc.driver.options import CompileOptions
from msc.driver.reports.explanations import explain_model

FOLDER = Path(__file__).resolve().parent
COMMAND = "python -m tests.schedules --write"
_BREAK = "\n// -----\n"


@dataclass(frozen=True)
class Machine:
    """What a record is for: a target, and how many threads share a call."""

    march: str
    threads: int

    @property
    def path(self) -> Path:
        """Where its record stands."""
        return FOLDER / f"{self.march}-{self.threads}.txt"


MACHINES = (Machine("x86-64-v3", 1), Machine("x86-64-v4", 4), Machine("neon", 1))


def layers() -> Mapping[str, str]:
    """Modules of layers by name."""
    text = (FOLDER / "layers.mir").read_text(encoding="utf-8")
    sections = text.partition("\n\n")[2].split(_BREAK)
    named = (section.partition("\n") for section in sections)
    return {name.removeprefix("// "): module for name, _, module in named}


def record(machine: Machine) -> str:
    """The schedules of all layers on a machine: nothing that the machine of the test has a part in."""
    with TemporaryDirectory(prefix="msc-schedules-") as folder:
        path = Path(folder) / "layer.mir"
        return "\n".join("\n".join(_lines(name, text, machine, path)) for name, text in layers().items()) + "\n"


def _lines(name: str, text: str, machine: Machine, path: Path) -> Iterator[str]:
    path.write_text(text, encoding="utf-8")
    yield f"{name}:"
    for kernel in explain_model(str(path), CompileOptions(march=machine.march, threads=machine.threads)):
        yield f"  {kernel.label}"
        yield from (f"    {line}" for line in kernel.schedule)


def difference(machine: Machine, found: str) -> str:
    """What changed since the record was written, layer by layer; "" if nothing did."""
    kept = machine.path.read_text(encoding="utf-8") if machine.path.exists() else ""
    lines = unified_diff(
        kept.splitlines(), found.splitlines(), f"{machine.path.name}, recorded", "picked now", lineterm="", n=4
    )
    return "\n".join(lines)
