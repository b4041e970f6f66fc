"""The record that every table of codes is made of."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Code:
    """A diagnostic code: `title` in a few words, `explanation` of what it means and what to do about it."""

    code: str
    title: str
    explanation: str
