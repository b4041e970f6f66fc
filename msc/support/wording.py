"""Words of messages."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """A number and a regular noun in the singular or the plural: `1 kernel`, `2 kernels`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def a(noun: str) -> str:
    """A noun, or a name, with its indefinite article: `a Cell`, `an Optimizer`; letters are read as their names."""
    sounds = _SPELLED_VOWELS if noun[:2].isupper() or len(noun) == 1 else _VOWELS
    if noun.startswith("nd"):
        return f"an {noun}"  # n-dimensional
    return f"{'an' if noun[:1] in sounds and not noun.startswith(_AS_YOU) else 'a'} {noun}"


_VOWELS = "aeiouAEIOU"
_SPELLED_VOWELS = "AEFHILMNORSX"
_AS_YOU = ("Uni", "uni", "uint", "UInt", "use", "Use", "one", "One", "euler", "Euler")
"""Beginnings that sound like a consonant, as `a union` does."""
