"""What one core of this machine can do at best, measured by the C programs in ``probes/``."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

PROBES = Path(__file__).resolve().parent / "probes"
FLAGS = ("-O3", "-std=gnu11", "-march=native", "-ffp-contract=fast")


class ProbeError(Exception):
    """A probe could not be built or run; the message says why."""


@dataclass(frozen=True)
class Machine:
    """One core: peak multiply-adds per second in f32, and bytes per second to and from memory."""

    cpu: str
    cpus: int
    multiply_adds_per_second: float
    bytes_per_second: float


def _compiler() -> str:
    for name in (os.environ.get("CC"), "gcc", "clang", "cc"):
        if name and (found := shutil.which(name)):
            return found
    raise ProbeError("no C compiler found: set CC, or install gcc or clang")


def _probe(name: str, folder: Path) -> float:
    """Build and run one probe; the number it prints."""
    program = folder / name
    try:
        subprocess.run(
            [_compiler(), *FLAGS, str(PROBES / f"{name}.c"), "-o", str(program)],
            check=True, capture_output=True, text=True,
        )  # fmt: skip
        return float(subprocess.run([str(program)], check=True, capture_output=True, text=True).stdout)
    except subprocess.CalledProcessError as error:
        raise ProbeError(f"the probe '{name}' failed: {error.stderr}") from error


def cpu_model() -> str:
    """The processor's name as the system gives it."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def probe() -> Machine:
    """Measure this machine; about two seconds. Raises ``ProbeError``."""
    with tempfile.TemporaryDirectory() as folder:
        fma, triad = (_probe(name, Path(folder)) for name in ("fma", "triad"))
    return Machine(cpu_model(), os.cpu_count() or 1, fma, triad)
