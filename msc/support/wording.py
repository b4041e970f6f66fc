"""Words of messages."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """A number and a regular noun in the singular or the plural: `1 kernel`, `2 kernels`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
