"""Level 1: machines as data."""

from __future__ import annotations

from msc.targets.catalogue import machine_named
from msc.targets.machine import Level, Machine

__all__ = ["Level", "Machine", "machine_named"]
