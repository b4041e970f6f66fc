"""Modules that register what they define, imported when somebody first looks into their table."""

from __future__ import annotations

from functools import cache
from importlib import import_module


@cache
def import_families(package: str, families: tuple[str, ...]) -> None:
    """Import modules of a package, once: tables are asked for each operation."""
    for family in families:
        import_module(f"{package}.{family}")
