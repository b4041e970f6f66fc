"""What this machine is: CPU flags, caches, cores, from the files that Linux offers; unknown elsewhere."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path

_CPUINFO = Path("/proc/cpuinfo")
_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "": 1}


def detect_machine() -> str:
    """The architecture as `uname -m` names it."""
    return platform.machine().lower()


def detect_flags(cpuinfo: Path = _CPUINFO) -> frozenset[str]:
    """The CPU's feature names; none where they cannot be read."""
    try:
        text = cpuinfo.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return frozenset()
    match = re.search(r"^(?:flags|Features)[ \t]*:(.*)$", text, re.MULTILINE)
    return frozenset(match.group(1).split()) if match else frozenset()


def detect_cpu_model(cpuinfo: Path = _CPUINFO) -> str:
    """The processor's name as the system gives it; the architecture where it gives none."""
    try:
        text = cpuinfo.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return detect_machine()
    match = re.search(r"^model name[ \t]*:[ \t]*(.*)$", text, re.MULTILINE)
    return match.group(1).strip() if match else detect_machine()


def detect_caches(folder: Path = _CACHES) -> tuple[int, int, int]:
    """Bytes of the data caches L1, L2, L3 of the first core; 0 where unknown."""
    sizes = {1: 0, 2: 0, 3: 0}
    for index in sorted(folder.glob("index*")) if folder.is_dir() else ():
        level, kind, size = (_read(index / name) for name in ("level", "type", "size"))
        if kind in ("Data", "Unified") and level.isdigit() and int(level) in sizes:
            sizes[int(level)] = _bytes(size)
    return sizes[1], sizes[2], sizes[3]


def detect_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return max(1, len(os.sched_getaffinity(0)))
    return os.cpu_count() or 1


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""


def _bytes(text: str) -> int:
    match = re.fullmatch(r"(\d+)([KMG]?)", text)
    return int(match.group(1)) * _UNITS[match.group(2)] if match else 0
