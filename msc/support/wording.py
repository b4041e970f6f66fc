"""Words of messages."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """A number and a regular noun in the singular or the plural: `1 kernel`, `2 kernels`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def size_text(count: float, below: str = "bytes") -> str:
    """A number of bytes for people: `3.2 MiB`; what is less than 1 KiB is called `below`."""
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if count >= unit:
            return f"{count / unit:.1f} {name}"
    return f"{count:.0f} {below}"


def memory_text(count: float) -> str:
    """A number of bytes as tables show it: `3.2 MiB`, `512 B`."""
    return size_text(count, "B")


def seconds_text(seconds: float) -> str:
    """A time for people, with the unit that suits it: `3.2 ms`."""
    for scale, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds * 1e6:.2g} us" if seconds else "0 s"


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
