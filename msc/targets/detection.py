"""The CPU, features and caches of the machine that msc runs on, from the files of Linux; unknown on other systems."""

from __future__ import annotations

import platform
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_CPUINFO = Path("/proc/cpuinfo")
_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "": 1}


@dataclass(frozen=True)
class CpuFacts:
    """A CPU: its architecture as `uname -m` names it, and what the first processor of /proc/cpuinfo says.

    `vendor`, `family` and `model` are those of x86; of ARM the implementer and the part.
    """

    architecture: str
    flags: frozenset[str] = frozenset()
    vendor: str = ""
    family: int | None = None
    model: int | None = None
    title: str = ""


@dataclass(frozen=True)
class CacheFacts:
    """A data cache of the first core: its level, bytes, ways and bytes of a line; 0 if unknown."""

    level: int
    bytes: int
    ways: int = 0
    line: int = 0


def detect_machine() -> str:
    """The architecture as `uname -m` names it."""
    return platform.machine().lower()


@cache
def detect_cpu(cpuinfo: Path = _CPUINFO) -> CpuFacts:
    """The first processor; only the architecture is known if the file cannot be read."""
    try:
        text = cpuinfo.read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    return cpu_facts(text, detect_machine())


def cpu_facts(cpuinfo: str, architecture: str) -> CpuFacts:
    """What the text of /proc/cpuinfo says of its first processor."""
    pairs = re.findall(r"^([^:\n]+?)[ \t]*:[ \t]*(.*?)[ \t]*$", cpuinfo, re.MULTILINE)
    said: dict[str, str] = dict(reversed(pairs))
    vendor = said.get("vendor_id") or said.get("CPU implementer", "")
    family, model = said.get("cpu family", ""), said.get("model", "") or said.get("CPU part", "")
    flags = frozenset((said.get("flags") or said.get("Features", "")).split())
    return CpuFacts(
        architecture, flags | _riscv(said), vendor, _number(family), _number(model), said.get("model name", "")
    )


def _riscv(said: dict[str, str]) -> frozenset[str]:
    """The extensions of a RISC-V processor: `rv64imafdcv_zba` has v and zba."""
    base, *named = said.get("isa", "").split("_")
    letters = re.fullmatch(r"rv\d+(\w+)", base)
    return frozenset((*(letters[1] if letters else ""), *named))


def _number(text: str) -> int | None:
    try:
        return int(text, 0)
    except ValueError:
        return None


def detect_flags() -> frozenset[str]:
    """The CPU's feature names; none if they cannot be read."""
    return detect_cpu().flags


def detect_cpu_model() -> str:
    """The processor's name as the system gives it; the architecture if it gives none."""
    return detect_cpu().title or detect_machine()


@cache
def detect_cache_facts(folder: Path = _CACHES) -> tuple[CacheFacts, ...]:
    """The data caches of the first core, nearest first."""
    found: dict[int, CacheFacts] = {}
    for index in sorted(folder.glob("index*")) if folder.is_dir() else ():
        level, kind, size = (_read(index / name) for name in ("level", "type", "size"))
        if kind in ("Data", "Unified") and level.isdigit() and _bytes(size):
            ways, line = (
                _number(_read(index / name)) or 0 for name in ("ways_of_associativity", "coherency_line_size")
            )
            found[int(level)] = CacheFacts(int(level), _bytes(size), ways, line)
    return tuple(found[level] for level in sorted(found))


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""


def _bytes(text: str) -> int:
    match = re.fullmatch(r"(\d+)([KMG]?)", text)
    return int(match.group(1)) * _UNITS[match.group(2)] if match else 0
