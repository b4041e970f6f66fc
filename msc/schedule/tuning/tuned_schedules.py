"""What tuning found, as a file that people review: for each kernel that got faster its schedule and what was measured.

    {"format": 1, "msc": "0.1.0", "kernels": [
      {"label": "dense_relu", "key": "4f0c...", "target": "native ...", "threads": 1,
       "before_us": 10.2, "after_us": 8.1, "schedule": ["axis n 256: S0.1 S1.1", ..., "for n tile 64", ...]}]}

An entry is for the kernel with its key: the digest of all that a schedule depends on.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import cast

from msc import __version__
from msc.analysis.kernel_model import kernel_model, output_positions
from msc.analysis.target import target_of
from msc.dialects.gk import KernelOp
from msc.poly.schedule_tree.nodes import Tree
from msc.poly.schedule_tree.text import from_lines
from msc.poly.schedule_tree.verify import check_structure
from msc.support.diagnostics import Diagnostic, MscError
from msc.support.files import read_source
from msc.support.hashing import digest
from msc.targets.detection import detect_cpu_model
from msc.targets.machine import Machine

FORMAT = 2
"""Version of the file; a reader refuses others."""


@dataclass(frozen=True)
class TunedSchedule:
    """One kernel's schedule as lines; `target` is `target_text`, times are microseconds of one call."""

    label: str
    key: str
    target: str
    threads: int
    before_us: float
    after_us: float
    schedule: tuple[str, ...]

    @property
    def tree(self) -> Tree:
        """The schedule. Raises ScheduleError."""
        return from_lines(self.schedule)


@dataclass(frozen=True)
class TuningFile:
    """The entries of one file, and the version of msc whose kernels they are of."""

    entries: tuple[TunedSchedule, ...]
    version: str = __version__

    def to_json(self) -> str:
        """Indented, so that changes can be reviewed."""
        kernels = [asdict(entry) for entry in self.entries]
        return json.dumps({"format": FORMAT, "msc": self.version, "kernels": kernels}, indent=2) + "\n"


def kernel_key(kernel: KernelOp, target: Machine, threads: int) -> str:
    """The digest of what a kernel computes, for which target and how many threads; names and places do not count."""
    model = kernel_model(kernel)
    accelerator = target_of(kernel).accelerator
    parts = (repr(model.arrays), repr(model.statements), repr(output_positions(kernel)), *filter(None, (accelerator,)))
    return digest((*parts, target_text(target), repr(replace(target, name="", features=frozenset())), str(threads)))


def target_text(target: Machine) -> str:
    """A target with all that a schedule depends on; `native` says which CPU that is."""
    machine = f"{target.name} ({detect_cpu_model()})" if target.name == "native" else target.name
    caches = " ".join(str(size) for size in (target.l1, target.l2, target.l3))
    return f"{machine}: {target.vector_registers} registers of {target.vector_bytes} bytes, caches {caches}"


def read_tuning(path: Path) -> TuningFile:
    """Read a file that `msc tune` wrote. Raises MSC0001 to MSC0003, and MSC0411 when it is something else."""
    text = read_source(path)
    try:
        data = cast("dict[str, object]", json.loads(text))
        if not isinstance(cast(object, data), dict) or not isinstance(data.get("kernels", []), list):
            raise ValueError("it is no object with a list of kernels")
        if data["format"] != FORMAT:
            raise ValueError(f"its format is {data['format']!r}, this msc reads {FORMAT}")
        entries = tuple(_entry(item) for item in cast("Sequence[dict[str, object]]", data["kernels"]))
        return TuningFile(entries, str(data["msc"]))
    except KeyError as error:
        raise _malformed(path, f"it has no {error}") from error
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise _malformed(path, str(error)) from error


def is_tuning(path: Path) -> bool:
    """Whether a file is of `msc tune`. Raises OSError."""
    try:
        read_tuning(path)
    except MscError:
        return False
    return True


def _entry(item: dict[str, object]) -> TunedSchedule:
    texts = [item[name] for name in ("label", "key", "target")]
    schedule, threads, before, after = (item[name] for name in ("schedule", "threads", "before_us", "after_us"))
    lines = cast("list[object]", schedule) if isinstance(schedule, list) else [None]
    if not all(isinstance(text, str) for text in (*texts, *lines)):
        raise ValueError("label, key, target and the lines of schedule are strings")
    if not (isinstance(threads, int) and isinstance(before, int | float) and isinstance(after, int | float)):
        raise ValueError("threads, before_us and after_us are numbers")
    label, key, target = map(str, texts)
    found = TunedSchedule(label, key, target, threads, float(before), float(after), tuple(map(str, lines)))
    check_structure(found.tree)
    return found


def _malformed(path: Path, reason: str) -> MscError:
    return MscError(Diagnostic("MSC0411", f"'{path}' is not a tuning file: {reason[:200]}"))
