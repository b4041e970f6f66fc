"""How much of a gradient's communication is left when the backward pass ends."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator


def buckets(known: Iterable[tuple[float, float]], limit: float) -> Iterator[tuple[float, float]]:
    """Gradients together, as they become known, until they have `limit` bytes: when a bucket is full, and its bytes."""
    held, last = 0.0, 0.0
    for time, bytes_ in sorted(known):
        held, last = held + bytes_, time
        if held >= limit:
            yield last, held
            held = 0.0
    if held:
        yield last, held


def exposed_tail(
    known: Iterable[tuple[float, float]], end: float, limit: float, seconds: Callable[[float], float]
) -> float:
    """Seconds after `end` until all gradients are reduced.

    `known` has the time at which each gradient is known, and its bytes; `seconds` is the time of one reduction. A
    bucket is reduced when it is full and the one before it is done.
    """
    free = 0.0
    for ready, bytes_ in buckets(known, limit):
        free = max(free, ready) + seconds(bytes_)
    return max(0.0, free - end)
