"""Level 1: machines as data."""

from __future__ import annotations

from msc.targets.cpu import CpuTarget, cpu_target

__all__ = ["CpuTarget", "cpu_target"]
